"""One value has one digest and one name on the server, whoever writes it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest
from processes import LANGUAGES, Worker

from support.servers import Server

SECRET = b"k" * 32
RULES = {
    "plain": {"rates": "50/1h,5/1m"},
    "secret": {"rates": "5/1m", "secret_hex": SECRET.hex()},
    "strikes": {"threshold": 5, "lockout_window": "900s"},
    "net48": {"rates": "5/60s", "ipv6_prefix": 48},
}
POLICIES = {"plain": "5/1m,50/1h", "secret": "5/1m", "strikes": "s5/15m", "net48": "5/1m"}

PARTS = {
    "an email": ["ann@example.com"],
    "an email and a network": ["ann@example.com", "2001:db8:0:1::/64"],
    "not trimmed, not lowered": [" Ann@Example.COM "],
    "composed": ["\u00e9"],
    "decomposed": ["e\u0301"],
    "full width": ["\uff42\uff4f\uff42"],
    "dotted capital i": ["\u0130"],
    "sharp s": ["stra\u00dfe"],
    "right to left": ["\u202enna"],
    "a pair of surrogates": ["\U0001f600"],
    "a lone high surrogate": ["\ud800"],
    "a lone low surrogate": ["a\udfffb"],
    "surrogates in the wrong order": ["\udc00\ud800"],
    "lone surrogates that meet only across parts": ["\ud83d", "\ude00"],
    "NUL": ["\0"],
    "NUL inside": ["a\0b", "\0"],
    "a byte order mark": ["\ufeffann"],
    "the last code point": ["\U0010ffff"],
    "__proto__": ["__proto__"],
    "constructor": ["constructor", "toString"],
    "parts that join alike, one": ["a b", "c"],
    "parts that join alike, other": ["a", "b c"],
    "a part that looks like a length": ["\0\0\0\x01a"],
    "a pattern": ["[ab]*?"],
    "braces and colons": ["}:{x}:"],
    "a line break": ["a\r\nSET x y\r\n"],
    "sixteen parts": [str(part) for part in range(16)],
    "1 MB": ["x" * 1_048_576],
    "1 MB of three bytes each": ["\u20ac" * 349_525, "\ud800"],
}
ADDRESSES = {
    "203.0.113.9": "203.0.113.9",
    "::ffff:203.0.113.9": "203.0.113.9",
    "::FFFF:cb00:7109": "203.0.113.9",
    "0:0:0:0:0:ffff:203.0.113.9": "203.0.113.9",
    "64:ff9b::203.0.113.9": "203.0.113.9",
    "2002:cb00:7109::1": "203.0.113.9",
    "::ffff:203.0.113.10": "203.0.113.10",
    "2001:db8:0:1::1": "2001:db8:0:1::/64",
    "2001:0DB8:0000:0001:ffff:ffff:ffff:ffff": "2001:db8:0:1::/64",
    "2001:db8:0:1:0:0:192.0.2.1": "2001:db8:0:1::/64",
    "2001:db8:0:2::": "2001:db8:0:2::/64",
    "fe80::1%eth0": "fe80::/64",
    "::1": "::/64",
}


def digest(parts: list[str], secret: bytes | None = None) -> str:
    """Hash as the documentation says, without doorkeep."""
    # Pairs of surrogates are one character here already, lone ones are kept: WTF-8.
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    laid = b"".join(len(part).to_bytes(4, "big") + part for part in encoded)
    hashed = hashlib.sha256(laid) if secret is None else hmac.new(secret, laid, "sha256")
    return hashed.hexdigest()[:32]


def keys() -> dict[str, tuple[dict[str, Any], str]]:
    """Give every odd key under the rules that suit it, and its digest."""
    given: dict[str, tuple[dict[str, Any], str]] = {}
    for name, parts in PARTS.items():
        for rule in ("plain", "secret", "strikes"):
            expected = digest(parts, SECRET if rule == "secret" else None)
            given[f"{rule}: {name}"] = {"rule": rule, "parts": parts}, expected
    for address, network in ADDRESSES.items():
        given[f"plain: {address}"] = {"rule": "plain", "address": address}, digest([network])
        given[f"secret: {address}"] = {"rule": "secret", "address": address}, digest([network], SECRET)
    wide = {"rule": "net48", "address": "2001:db8:1:ffff::1"}
    given["net48: 2001:db8:1:ffff::1"] = wide, digest(["2001:db8:1::/48"])
    return given


@pytest.fixture(params=LANGUAGES)
def worker(request: pytest.FixtureRequest, start: Callable[..., Worker]) -> Worker:
    return start(request.param, rules=RULES)


def test_a_value_has_the_documented_digest_in_every_language(worker: Worker) -> None:
    expected = {name: digest for name, (_, digest) in keys().items()}
    assert {name: worker.ask("digest", key=key) for name, (key, _) in keys().items()} == expected


def test_a_limiter_writes_exactly_the_documented_names(worker: Worker, server: Server, prefix: str) -> None:
    for key, _ in keys().values():
        assert worker.ask("allow", keys=[key])["outcome"] != "unavailable"
    expected = {f"{prefix}:{{{key['rule']}:{hashed}}}:{POLICIES[key['rule']]}" for key, hashed in keys().values()}
    assert set(server.keys(f"{prefix}:*")) == expected


def test_single_key_limiters_write_exactly_the_documented_names(worker: Worker, server: Server, prefix: str) -> None:
    texts = [parts[0] for parts in PARTS.values() if len(parts) == 1]
    for text in texts:
        assert worker.ask("strike", key=text)["outcome"] == "allowed"
        assert worker.ask("take", key=text)
        assert worker.ask("consume", key=text)["outcome"] == "allowed"
    names = {"login-strikes": "s5/15m", "login-tokens": "9/1h", "login-window": "w11/1h"}
    expected = {f"{prefix}:{{{name}:{digest([text])}}}:{policy}" for name, policy in names.items() for text in texts}
    assert set(server.keys(f"{prefix}:*")) == expected


def test_another_language_writes_no_second_name(pair: tuple[Worker, Worker], server: Server, prefix: str) -> None:
    one, other = pair
    for name, parts in PARTS.items():
        call = {"keys": [{"rule": "login-ip", "parts": parts}]}
        assert one.ask("allow", **call)["remaining"] == 6, name
        assert other.ask("allow", **call)["remaining"] == 5, name
    assert len(server.keys(f"{prefix}:*")) == len(PARTS)
