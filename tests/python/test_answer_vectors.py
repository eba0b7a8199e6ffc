"""Replays the vectors of HTTP answers, presets, advice and keys of requests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import http_sfv
import pytest

import vectors
from doorkeep import Decision, Limiter, Rule, StrikeRule, http, keys_for, lint, presets
from doorkeep._native import _restore_decision
from doorkeep.errors import ConfigError, InvalidKeyError
from vectors import fields, micros, seconds

OUTCOMES = {"denied": 0, "allowed": 1, "allowed_last": 2}


def cases(file: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in vectors.cases(file)])


@cases("http")
def test_decisions_become_the_status_and_headers_of_the_vectors(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        rules = {label: vectors.rule(label, record) for label, record in take("rules").items()}
        keys = [vectors.key(rules, record) for record in take("keys")]
        made = decision(take("decision"))
        step = take("round_up_us")
        round_up = None if step is None else timedelta(microseconds=step)
        sent = http.headers(made, keys, round_up=round_up, rate_limit=take("rate_limit"))
        assert http.status(made) == take("status")
        assert sent == take("headers")
        for name in ("RateLimit", "RateLimit-Policy"):
            parses_back(sent.get(name))


@cases("presets")
def test_presets_are_the_vectors_presets_and_keep_their_claims(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        name = take("preset")
        preset = getattr(presets, name.replace("-", "_"))
        assert preset.name == name
        assert policy(preset) == take("policy")
        assert list(preset.by) == take("by")
        for span, most in take("max_in"):
            assert preset.max_in(timedelta(microseconds=span)) == most
            assert greedy(preset, span) == most
        if claim := take("claim"):
            with fields(claim) as promised:
                promised("source")
                assert preset.max_in(timedelta(microseconds=promised("span_us"))) <= promised("at_most")


def test_every_preset_is_in_the_vectors() -> None:
    names = [case["preset"].replace("-", "_") for case in vectors.cases("presets")]
    assert sorted(names) == sorted(presets.__all__)


@cases("lint")
def test_sets_of_rules_get_the_vectors_advice(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        rules = {rule.name: rule for rule in (described_rule(record) for record in take("rules"))}
        everything = [described_rule(record) for record in case["rules"]]
        forgive = take("forgive")
        expected = take("advice")
        assert lint(everything, forgive=forgive) == expected
        assert lint(iter(everything), forgive=[rules.get(name, name) for name in forgive]) == expected


@cases("keys-for")
def test_requests_have_the_vectors_keys(case: dict[str, Any]) -> None:
    with fields(case) as take:
        take("name")
        rules = [described_rule(record) for record in take("rules")]
        address = {"address": take("address")} if "address" in case else {}
        words = {word.replace("-", "_"): vectors.text(text) for word, text in take("words").items()}
        if "error" in case:
            refusal = {"config": ConfigError, "invalid_key": InvalidKeyError}[take("error")]
            with pytest.raises(refusal) as refused:
                keys_for(rules, **address, **words)
            assert str(refused.value) == take("message")
            return
        keys = keys_for(rules, **address, **words)
        assert [(key.rule, key.digest) for key in keys] == [(key["rule"], key["digest"]) for key in take("keys")]
        assert take("leaves_out") == (len(keys) < len(rules))


def described_rule(record: dict[str, Any]) -> Rule | StrikeRule:
    if "preset" in record:
        with fields(record) as take:
            preset: Rule | StrikeRule = getattr(presets, take("preset").replace("-", "_"))
            return preset
    named = dict(record)
    return vectors.rule(named.pop("name"), named)


def decision(record: dict[str, Any]) -> Decision:
    with fields(record) as take:
        wait = take("retry_after_us")
        return _restore_decision(
            OUTCOMES[take("outcome")],
            take("reason"),
            take("rule"),
            None if wait is None else timedelta(microseconds=wait),
            take("remaining"),
            timedelta(microseconds=take("reset_after_us")),
            False,
            [],
        )


def parses_back(field: str | None) -> None:
    """Check that a field is a list of RFC 9651 that prints as it was sent, with strings and whole numbers only."""
    if field is None:
        return
    parsed = http_sfv.List()
    parsed.parse(field.encode())
    assert str(parsed) == field
    assert len({item.value for item in parsed}) == len(parsed)
    for item in parsed:
        assert isinstance(item.value, str)
        assert set(item.params) <= {"q", "w", "r", "t"}
        assert all(type(number) is int and number >= 0 for number in item.params.values())


def policy(rule: Rule | StrikeRule) -> str:
    if isinstance(rule, Rule):
        return str(rule.rates)
    return f"s{rule.threshold}/{rule.lockout_window // timedelta(minutes=1)}m"


def greedy(rule: Rule | StrikeRule, span: int) -> int:
    """Count what an attacker gets on one key in a half-open span, trying again after each wait."""
    limiter, key = Limiter(), rule.key("victim")
    now = admitted = 0
    while now < span:
        answer = limiter.decide(key, now=seconds(now))
        admitted += answer.allowed
        now += micros(answer.retry_after) or 0
    return admitted
