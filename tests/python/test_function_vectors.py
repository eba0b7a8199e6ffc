"""Replays the vectors of pure functions: keys, networks, clients, spellings, rates and refused configurations.

Those of HTTP answers, presets and advice are replayed in `test_answer_vectors.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import vectors
from doorkeep import (
    AttemptLimiter,
    ClientIp,
    ConfigError,
    FixedWindow,
    InvalidKeyError,
    Limiter,
    Rates,
    Rule,
    StrikeRule,
    TokenBucket,
    canonical_email,
    canonical_username,
    http,
    network,
)
from vectors import duration, fields, raw, text

ERRORS = {"config": ConfigError, "invalid_key": InvalidKeyError}
DURATIONS = ("lockout_window", "window")


def cases(file: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in vectors.cases(file)])


@cases("keys")
def test_digests_are_the_vectors_digests(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        parts = [text(part) for part in take("parts")]
        secret = take("secret_hex", None)
        rule = Rule("login", "5/1m", secret=None if secret is None else bytes.fromhex(secret))
        if "error" in case:
            refused(take, lambda: rule.key(*parts))
        else:
            assert rule.key(*parts).digest == take("digest")


@cases("network")
def test_networks_are_the_vectors_networks(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        address, prefix = text(take("address")), take("ipv6_prefix")
        if "error" in case:
            refused(take, lambda: network(address, prefix))
            return
        expected = take("network")
        assert network(address, prefix) == expected
        rule = Rule("login", "5/1m", ipv6_prefix=prefix)
        assert rule.ip_key(address) == rule.key(expected)


@cases("client-ip")
def test_clients_are_found_as_the_vectors_say(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        proxies, header = take("trusted_proxies"), take("header")
        peer, lines = take("peer"), [text(line) for line in take("lines")]
        if "error" in case:
            refused(take, lambda: ClientIp(proxies, header))
            return
        client_ip = ClientIp(proxies, header)
        peer, expected = None if peer is None else text(peer), take("address")
        assert client_ip.resolve(peer, {"Host": "shop.example", header.title(): lines}) == expected
        assert client_ip.resolve(peer, [(header, line) for line in lines]) == expected
        raw_headers = [(header.lower().encode(), line.encode("utf-8", "surrogatepass")) for line in lines]
        assert client_ip.resolve(peer, [(b"host", b"shop.example"), *raw_headers]) == expected


@cases("email")
def test_emails_are_spelt_as_the_vectors_say(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        written = text(take("text"))
        options = {option: take(option) for option in ("drop_tags", "drop_gmail_dots") if option in case}
        if "error" in case:
            refused(take, lambda: canonical_email(written, **options))
            return
        expected = take("email")
        assert canonical_email(written, **options) == expected
        assert canonical_email(expected, **options) == expected


@cases("username")
def test_user_names_are_spelt_as_the_vectors_say(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        written = text(take("text"))
        if "error" in case:
            refused(take, lambda: canonical_username(written))
            return
        expected = take("username")
        assert canonical_username(written) == expected
        assert canonical_username(expected) == expected


@cases("rates")
def test_rates_parse_and_print_as_the_vectors_say(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        written = text(take("text"))
        if "error" in case:
            refused(take, lambda: Rates(written))
            return
        rates = Rates(written)
        assert str(rates) == take("canonical")
        assert str(Rates(str(rates))) == str(rates)
        for span, most in take("max_in", []):
            assert rates.max_in(timedelta(microseconds=span)) == most


@cases("config")
def test_refused_configurations_have_the_messages_of_the_vectors(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        refused(take, lambda: make(take("make")))


def refused(take: Any, call: Any) -> None:
    with pytest.raises(ERRORS[take("error")]) as caught:
        call()
    message, prefix = take("message", None), take("message_prefix", None)
    if message is None:
        assert str(caught.value).startswith(prefix)
    else:
        assert str(caught.value) == message


def make(record: dict[str, Any]) -> Any:
    kinds: dict[str, Any] = {
        "attempt_limiter": AttemptLimiter,
        "limiter": Limiter,
        "token_bucket": TokenBucket,
        "fixed_window": FixedWindow,
        "rule": Rule,
        "strike_rule": StrikeRule,
        "cost": lambda value: Limiter().decide(Rule("login", "5/1m").key("ann"), cost=value),
        "n": lambda value: TokenBucket().allow_n("ann", value),
        "round_up": lambda value: http.check_round_up(value),
    }
    durations = (*DURATIONS, "value") if record["kind"] == "round_up" else DURATIONS
    arguments = {name: (duration if name in durations else raw)(value) for name, value in record.items()}
    if "secret_hex" in arguments:
        arguments["secret"] = bytes.fromhex(arguments.pop("secret_hex"))
    return kinds[arguments.pop("kind")](**arguments)
