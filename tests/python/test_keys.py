"""Keys: different values have different keys, and values are never shown."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorkeep import (
    AttemptLimiter,
    ConfigError,
    FixedWindow,
    InvalidKeyError,
    Limiter,
    Outcome,
    Rule,
    StrikeRule,
    TokenBucket,
    network,
)

RULE = Rule("login", "1/1h")
ODD = ["__proto__", "constructor", "\0", "a\0b", "\ud800", "\udfff", "𐀀x", "x" * 10_000_000, " ", "é"]
TEXTS = st.text(st.characters(exclude_categories=()), min_size=1)


def test_odd_strings_have_separate_buckets() -> None:
    limiter = Limiter()
    strikes = AttemptLimiter(threshold=1, lockout_window="1h")
    bucket, window = TokenBucket(rate=1), FixedWindow(limit=1, window="1h")
    texts = list(dict.fromkeys(ODD))
    for text in texts:
        assert limiter.decide(RULE.key(text))
        assert strikes.attempt(text)
        assert bucket.allow(text)
        assert window.consume(text)
    for text in texts:
        assert not limiter.decide(RULE.key(text))
        assert strikes.attempt(text) is Outcome.DENIED
        assert not bucket.allow(text)
        assert not window.consume(text)
    assert len(strikes) == len(bucket) == len(window) == len(limiter) == len(texts)


def test_a_surrogate_pair_is_not_the_same_key_as_its_character() -> None:
    # In Python the two halves of a pair can be two characters; in JavaScript they are the same as the character.
    assert RULE.key("\ud800\udc00").digest == RULE.key("𐀀").digest


@pytest.mark.parametrize("bad", [None, 5, 1.5, b"ann", ["ann"], {}, object(), ""])
def test_an_empty_key_or_one_that_is_not_a_string_is_refused_and_nothing_counted(bad: object) -> None:
    strikes, window = AttemptLimiter(threshold=1, lockout_window=60), FixedWindow(limit=1, window=60)
    calls: list[Callable[[], object]] = [
        lambda: RULE.key(bad),  # type: ignore[arg-type]
        lambda: RULE.key("ann", bad),  # type: ignore[arg-type]
        lambda: RULE.ip_key(bad),  # type: ignore[arg-type]
        lambda: network(bad),  # type: ignore[arg-type]
        lambda: strikes.attempt(bad),  # type: ignore[arg-type]
        lambda: strikes.reserve(bad),  # type: ignore[arg-type]
        lambda: strikes.locked(bad),  # type: ignore[arg-type]
        lambda: strikes.reset(bad),  # type: ignore[arg-type]
        lambda: window.consume(bad),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InvalidKeyError):
            call()
    assert len(strikes) == len(window) == 0


def test_an_empty_key_takes_no_token_and_shares_no_bucket() -> None:
    bucket = TokenBucket(rate=1)
    assert not bucket.allow("")
    assert bucket.reset("")
    assert len(bucket) == 0
    with pytest.raises(InvalidKeyError, match="a key must be text"):
        bucket.allow(None)  # type: ignore[arg-type]


def test_a_bad_part_is_named_by_its_position_and_never_by_its_value() -> None:
    with pytest.raises(InvalidKeyError, match="^a key part must be text, part=2$"):
        RULE.key("ann", 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidKeyError, match="^a key needs at least one part$"):
        RULE.key()


@given(st.lists(TEXTS, min_size=1, max_size=4), st.lists(TEXTS, min_size=1, max_size=4))
def test_different_parts_make_different_keys(one: list[str], other: list[str]) -> None:
    def utf16(parts: list[str]) -> list[bytes]:
        return [part.encode("utf-16-le", "surrogatepass") for part in parts]

    assert (RULE.key(*one) == RULE.key(*other)) == (utf16(one) == utf16(other))


def test_a_key_shows_its_rule_and_digest_but_never_its_value() -> None:
    key = RULE.key("ann@example.com")
    assert (key.rule, key.digest) == ("login", "cb58bf5ef793e978fe9b726001cd6266")
    assert repr(key) == "<Key of login>"


def test_a_secret_changes_every_key_and_is_shown_nowhere() -> None:
    secret = "k" * 32
    keyed = [Rule("login", "1/1h", secret=secret), Rule("login", "1/1h", secret=secret.encode())]
    assert {rule.key("ann@example.com").digest for rule in keyed} == {"3f9aa888c7fd13aa8f01486f2b2f6a95"}
    assert secret not in repr(keyed[0])


def test_one_address_in_any_spelling_is_one_key() -> None:
    mapped = ["::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1", ip_address("::ffff:192.0.2.1")]
    assert {network(address) for address in mapped} == {"192.0.2.1"} == {network(ip_address("192.0.2.1"))}
    assert {RULE.ip_key(address).digest for address in mapped} == {RULE.key("192.0.2.1").digest}
    assert network("::ffff:192.0.2.2") == "192.0.2.2"


def test_addresses_of_one_network_share_one_bucket(doorkeep_clock: object) -> None:
    strikes = StrikeRule("ip", threshold=5, lockout_window=60)
    limiter = Limiter()
    decisions = [limiter.decide(strikes.ip_key(f"2001:db8:0:1::{n:x}")) for n in range(100)]
    assert [decision.outcome.name for decision in decisions[:6]] == ["ALLOWED"] * 4 + [
        "ALLOWED_LAST_ATTEMPT",
        "DENIED",
    ]
    assert sum(map(bool, decisions)) == 5
    assert limiter.decide(strikes.ip_key("2001:db8:0:2::1"))
    assert network("2001:db8:0:2::1", 56) == network("2001:db8:0:1::1", ipv6_prefix=56)


def test_rules_of_one_name_must_agree_within_a_limiter() -> None:
    limiter = Limiter()
    limiter.decide(Rule("login", "5/1m").key("a"))
    with pytest.raises(ConfigError, match="rules of one name must agree"):
        limiter.decide(Rule("login", "6/1m").key("a"))
    with pytest.raises(ConfigError, match="rules of one name must agree"):
        limiter.decide(StrikeRule("login", threshold=5, lockout_window=60).key("a"))
    assert limiter.peek(Rule("login", "5/1m").key("a")).remaining == 4


def test_a_rule_shows_its_parameters() -> None:
    rule = Rule("login-ip", "200/1h,20/1m", ipv6_prefix=56, by=("address",))
    assert (rule.name, str(rule.rates), rule.ipv6_prefix, rule.by) == ("login-ip", "20/1m,200/1h", 56, ("address",))
    assert rule.max_in("1h") == rule.rates.max_in("1h") == 399
    strikes = StrikeRule("login", threshold=5, lockout_window="15m", by="account")
    assert (strikes.threshold, strikes.lockout_window.total_seconds(), strikes.by) == (5, 900, ("account",))
    assert strikes.max_in("24h") == 480
    assert repr(rule) == 'Rule("login-ip", "20/1m,200/1h")'
    assert repr(strikes) == 'StrikeRule("login", "s5/15m")'
