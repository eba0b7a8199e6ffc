"""Clients behind proxies, spellings of accounts, and the keys that are made from them."""

from __future__ import annotations

import logging
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from django.http.request import HttpHeaders
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from doorkeep import (
    AttemptLimiter,
    ClientIp,
    ConfigError,
    InvalidKeyError,
    Limiter,
    Rule,
    StrikeRule,
    _keys,
    canonical_email,
    canonical_username,
    keys_for,
    network,
)

PROXY = "10.0.0.1"
BEHIND = ClientIp(["10.0.0.0/8"])
LOGIN_IP = Rule("login-ip", "20/1m", by=("address",), ipv6_prefix=56)
LOGIN_ACCOUNT = Rule("login-account", "50/1h", by=("account",))
LOGIN_ACCOUNT_IP = StrikeRule("login-account-ip", threshold=5, lockout_window=60, by=("account", "address"))
TEXTS = st.text(st.characters(exclude_categories=()))


def message() -> Message:
    made = Message()
    made["X-Forwarded-For"] = "1.2.3.4"
    made["X-Forwarded-For"] = "203.0.113.9"
    return made


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "1.2.3.4, 203.0.113.9"},
        {"x-forwarded-for": ["1.2.3.4", "203.0.113.9"]},
        {b"X-FORWARDED-FOR": (b"1.2.3.4", "203.0.113.9")},
        [(b"host", b"a.b"), (b"x-forwarded-for", b"1.2.3.4"), (b"x-forwarded-for", b"203.0.113.9")],
        [[b"x-forwarded-for", b"203.0.113.9"]],
        iter([("X-Forwarded-For", "203.0.113.9")]),
        (pair for pair in [("X-Forwarded-For", "203.0.113.9")]),
        Headers(raw=[(b"x-forwarded-for", b"1.2.3.4"), (b"x-forwarded-for", b"203.0.113.9")]),
        HttpHeaders({"HTTP_X_FORWARDED_FOR": "1.2.3.4, 203.0.113.9", "CONTENT_TYPE": "text/plain"}),
        message(),
    ],
    ids=lambda headers: type(headers).__name__,
)
def test_headers_of_every_framework_are_read(headers: Any) -> None:
    assert BEHIND.resolve(PROXY, headers) == "203.0.113.9"


@pytest.mark.parametrize("headers", [{}, [], (), {"Host": "a.b"}, {5: "1.2.3.4", None: "x"}, {"X-Forwarded-For": None}])
def test_without_the_header_the_peer_is_the_client(headers: Any) -> None:
    assert BEHIND.resolve(PROXY, headers) == PROXY


@pytest.mark.parametrize("value", [5, 1.5, object(), {}, bytearray(b"1.2.3.4"), ["1.2.3.4", 7], "\udcff", b"\xff\xfe"])
def test_a_value_without_an_address_is_an_unusable_hop(value: Any) -> None:
    assert BEHIND.resolve(PROXY, {"X-Forwarded-For": value}) == PROXY


@pytest.mark.parametrize("headers", [None, 5, "x-forwarded-for", b"ab", [5], ["ab"], [("a",)], [("a", "b", "c")], [[]]])
def test_invalid_headers_are_a_mistake_in_the_program(headers: Any) -> None:
    with pytest.raises(ConfigError, match="headers must be a mapping of names to values, or pairs of them"):
        BEHIND.resolve(PROXY, headers)


@pytest.mark.parametrize("peer", [5, b"10.0.0.1", (PROXY, 80), ip_address(PROXY)])
def test_a_peer_that_is_not_a_string_is_a_mistake_in_the_program(peer: Any) -> None:
    with pytest.raises(ConfigError, match="peer must be the text of an address, or none"):
        BEHIND.resolve(peer, {})


def test_an_error_of_a_mapping_reaches_the_caller() -> None:
    class Broken(dict[str, str]):
        def items(self) -> Any:
            raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        BEHIND.resolve(PROXY, Broken())


@given(st.one_of(TEXTS, st.binary()), TEXTS)
def test_nothing_that_a_client_sends_raises(value: str | bytes, peer: str) -> None:
    for header in ("x-forwarded-for", "forwarded", "x-real-ip"):
        client_ip = ClientIp("10.0.0.0/8", header)
        assert client_ip.resolve(PROXY, [(header, value)]) is not None
        client_ip.resolve(peer, [(header, value)])


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip"])
@pytest.mark.parametrize(
    "piece", ["10.0.0.2,", "1", '"', "\\", ";", " ", "é,", "for=10.0.0.2,", "for=10.0.0.2;", "=", "["]
)
def test_a_header_of_ten_megabytes_is_answered_immediately(header: str, piece: str) -> None:
    value = piece * (10_000_000 // len(piece))
    raw = value.encode("latin-1")
    started = time.monotonic()
    assert ClientIp("10.0.0.0/8", header).resolve(PROXY, {header: value}) is not None
    assert ClientIp("10.0.0.0/8", header).resolve(PROXY, [(header.encode(), raw)]) is not None
    assert time.monotonic() - started < 0.25


def test_rotating_the_entry_that_the_client_writes_changes_no_bucket() -> None:
    strikes = AttemptLimiter(threshold=3, lockout_window=60)
    outcomes = []
    for i in range(6):
        address = BEHIND.resolve(PROXY, {"X-Forwarded-For": f"198.51.100.{i}, 203.0.113.9"})
        assert address is not None
        outcomes.append(strikes.attempt(address, now=0).name)
    assert outcomes == ["ALLOWED", "ALLOWED", "ALLOWED_LAST_ATTEMPT", "DENIED", "DENIED", "DENIED"]


def test_proxies_are_strings_or_objects_of_ipaddress() -> None:
    client_ip = ClientIp(
        [ip_network("10.0.0.0/8"), ip_address("2001:db8::1"), "::ffff:192.0.2.0/120"], "CF-Connecting-IP"
    )
    assert client_ip.trusted_proxies == ("10.0.0.0/8", "2001:db8::1/128", "192.0.2.0/24")
    assert client_ip.header == "cf-connecting-ip"
    assert repr(client_ip) == 'ClientIp(["10.0.0.0/8", "2001:db8::1/128", "192.0.2.0/24"], "cf-connecting-ip")'
    assert ClientIp("10.0.0.0/8").trusted_proxies == ("10.0.0.0/8",)
    assert ClientIp().trusted_proxies == ClientIp(None, None).trusted_proxies == ()  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        client_ip.header = "forwarded"  # type: ignore[misc]


@pytest.mark.parametrize("proxies", [[None], [5], [b"10.0.0.0/8"], b"10.0.0.0/8", [["10.0.0.0/8"]], "*"])
def test_proxies_of_other_types_are_refused(proxies: Any) -> None:
    with pytest.raises(ConfigError, match="trusted proxy must be an address or a network"):
        ClientIp(proxies)


def test_a_header_of_another_type_is_refused() -> None:
    with pytest.raises(ConfigError, match="header must be the name of a header, value=`5`"):
        ClientIp(header=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"])
def test_an_unknown_proxy_is_warned_about_once(caplog: pytest.LogCaptureFixture, name: str) -> None:
    client_ip = ClientIp()
    client_ip.resolve("127.0.0.1", {"Host": "a.b"})
    client_ip.resolve("203.0.113.9", {name: "1.2.3.4"})
    assert not caplog.records
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client_ip.resolve("127.0.0.1", {name: "1.2.3.4"}), range(100)))
    assert answers == ["127.0.0.1"] * 100
    [record] = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "doorkeep")
    assert record.__dict__["doorkeep_event"] == "untrusted_proxy"
    assert "1.2.3.4" not in record.getMessage()
    assert "127.0.0.1" not in record.getMessage()


def test_a_trusted_proxy_is_not_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    BEHIND.resolve(PROXY, {"X-Forwarded-For": "1.2.3.4", "Forwarded": "for=1.2.3.4"})
    BEHIND.resolve("192.168.0.1", {"X-Forwarded-For": "1.2.3.4"})
    assert not caplog.records


def test_a_request_gets_its_address_even_if_logging_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)

    def fails(record: logging.LogRecord) -> bool:
        raise OSError("disk full")

    logger = logging.getLogger("doorkeep")
    logger.addFilter(fails)
    try:
        assert ClientIp().resolve("127.0.0.1", {"Forwarded": "for=1.2.3.4"}) == "127.0.0.1"
    finally:
        logger.removeFilter(fails)
    assert [type(raised.exc_value) for raised in seen] == [OSError]


def test_spellings_of_one_account_share_a_bucket_and_others_do_not() -> None:
    spellings = [" Bob@Example.COM ", "bob@example.com", "\uff42\uff4f\uff42\uff20example.com"]
    assert len({LOGIN_ACCOUNT.key(canonical_email(text)) for text in spellings}) == 1
    apart = [
        "straße@example.com",
        "strasse@example.com",
        "ian@example.com",
        "\u0131an@example.com",
        "\u0130an@example.com",
    ]
    assert len({LOGIN_ACCOUNT.key(canonical_email(text)) for text in apart}) == len(apart)


@pytest.mark.parametrize("bad", [None, 5, 1.5, b"ann@example.com", ["ann@example.com"], {}, object()])
def test_values_that_are_not_strings_have_no_spelling(bad: Any) -> None:
    with pytest.raises(InvalidKeyError, match="an email must be text"):
        canonical_email(bad)
    with pytest.raises(InvalidKeyError, match="a username must be text"):
        canonical_username(bad)


@pytest.mark.parametrize("flag", [1, 0, "yes", 1.0, object()])
def test_an_option_that_is_not_a_boolean_is_refused(flag: Any) -> None:
    with pytest.raises(ConfigError, match="drop tags must be true or false"):
        canonical_email("ann@example.com", drop_tags=flag)
    with pytest.raises(ConfigError, match="drop gmail dots must be true or false"):
        canonical_email("ann@example.com", drop_gmail_dots=flag)


@given(TEXTS, st.booleans(), st.booleans())
def test_spelling_twice_changes_nothing(text: str, drop_tags: bool, drop_gmail_dots: bool) -> None:
    for written in (text, f"{text}@gmail.com", f"ann@{text}"):
        try:
            email = canonical_email(written, drop_tags=drop_tags, drop_gmail_dots=drop_gmail_dots)
        except InvalidKeyError:
            continue
        assert canonical_email(email, drop_tags=drop_tags, drop_gmail_dots=drop_gmail_dots) == email


@pytest.mark.parametrize("text", ["@" * 10_000_000, " " * 10_000_000, "ﷺ" * 3_000_000, "\ud800" * 3_000_000])
def test_a_string_of_ten_megabytes_is_refused_immediately(text: str) -> None:
    started = time.monotonic()
    for spelling in (canonical_email, canonical_username):
        with pytest.raises(InvalidKeyError):
            spelling(text)
    assert time.monotonic() - started < 0.5


def test_keys_are_made_of_the_words_of_their_rules() -> None:
    address, account = "2001:db8:0:12ff::1", "ann@example.com"
    rules: list[Rule | StrikeRule] = [LOGIN_IP, LOGIN_ACCOUNT, LOGIN_ACCOUNT_IP]
    keys = keys_for(rules, address=address, account=account, unused="x")
    assert keys == [
        LOGIN_IP.ip_key(address),
        LOGIN_ACCOUNT.key(account),
        LOGIN_ACCOUNT_IP.key(account, network(address)),
    ]
    assert keys_for(LOGIN_ACCOUNT, account=account) == [LOGIN_ACCOUNT.key(account)]
    assert keys_for((rule for rule in rules), address=ip_address(address), account=account) == keys


def test_a_success_may_not_forgive_the_key_of_an_address() -> None:
    limiter = Limiter()
    attempt = limiter.attempt(*keys_for([LOGIN_IP, LOGIN_ACCOUNT], address="203.0.113.9", account="ann"))
    with pytest.raises(ConfigError):
        attempt.success(forgive=[LOGIN_IP])


def test_a_network_is_as_wide_as_its_rule_says() -> None:
    wide = StrikeRule("wide", threshold=5, lockout_window=60, ipv6_prefix=48, by=("address", "account"))
    [key] = keys_for([wide], address="2001:db8:1:2::3", account="ann")
    assert key == wide.key("2001:db8:1::/48", "ann")


def test_addresses_of_one_network_share_the_strikes_of_an_account() -> None:
    limiter = Limiter()
    rule = StrikeRule("account-ip", threshold=5, lockout_window=60, by=("account", "address"))

    def attempts(subnet: str, count: int) -> list[str]:
        keys = [keys_for(rule, address=f"2001:db8:0:{subnet}::{i:x}", account="bob") for i in range(count)]
        return [limiter.decide(*key, now=0).outcome.name for key in keys]

    assert attempts("1", 100) == ["ALLOWED"] * 4 + ["ALLOWED_LAST_ATTEMPT"] + ["DENIED"] * 95
    assert attempts("2", 1) == ["ALLOWED"]


def test_a_word_with_a_hyphen_is_passed_with_an_underscore() -> None:
    rule = Rule("device", "5/1m", by=("user-id", "address"))
    assert keys_for(rule, address="203.0.113.9", user_id="7") == [rule.key("7", "203.0.113.9")]


def test_without_an_address_its_rules_are_left_out_with_one_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_keys, "_warned", False)
    rules: list[Rule | StrikeRule] = [LOGIN_IP, LOGIN_ACCOUNT, LOGIN_ACCOUNT_IP]
    for _ in range(3):
        assert keys_for(rules, address=None, account="ann") == [LOGIN_ACCOUNT.key("ann")]
    [record] = caplog.records
    assert record.__dict__["doorkeep_event"] == "no_address"
    with pytest.raises(InvalidKeyError, match="no key is left"):
        keys_for([LOGIN_IP, LOGIN_ACCOUNT_IP], address=None, account="ann")


def test_omitting_the_address_is_a_mistake_in_the_program() -> None:
    rules = [LOGIN_ACCOUNT, LOGIN_ACCOUNT_IP]
    for values in ({}, {"ip": "203.0.113.9"}, {"adress": "203.0.113.9"}):
        with pytest.raises(ConfigError, match="needs an address, or none by name, rule=`login-account-ip`"):
            keys_for(rules, account="ann", **values)


@pytest.mark.parametrize("account", [None, "", 5, b"ann", ["ann"]])
def test_a_word_without_a_string_is_named(account: Any) -> None:
    with pytest.raises(InvalidKeyError, match="rule=`login-account-ip`, word=`account`"):
        keys_for([LOGIN_ACCOUNT_IP], address="203.0.113.9", account=account)


def test_a_word_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidKeyError, match="rule=`login-account`, word=`account`"):
        keys_for([LOGIN_IP, LOGIN_ACCOUNT], address="203.0.113.9", acount="ann")


@pytest.mark.parametrize("address", ["", "junk", "testclient", 5])
def test_an_invalid_address_is_refused(address: Any) -> None:
    for rule in (LOGIN_IP, LOGIN_ACCOUNT_IP):
        with pytest.raises(InvalidKeyError, match="not an IPv4 or IPv6 address"):
            keys_for([rule], address=address, account="ann")


def test_a_rule_without_by_is_refused() -> None:
    with pytest.raises(ConfigError, match="a rule must say what it is keyed by, rule=`plain`"):
        keys_for([Rule("plain", "5/1m")], account="ann")
    with pytest.raises(InvalidKeyError, match="no key is left"):
        keys_for([], account="ann")
