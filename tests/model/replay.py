"""Replays the cases of tests/vectors against the model.

Knows the format of the vectors and nothing of what is decided. Invariant: a field that it does not know is an error.
"""

import json
import re
from pathlib import Path

import answers
import canonical
import clients
import durations
import keys
import limiter
import rates
from engine import Decision
from errors import ConfigError, InvalidKeyError
from fixed_window import FixedWindow
from single import AttemptLimiter, TokenBucket


class Difference(AssertionError):
    """The model answers something else than the vector says."""


class Fields:
    """A JSON object of which every field must be used."""

    def __init__(self, fields):
        self.fields = dict(fields)

    def take(self, name, *default):
        return self.fields.pop(name, *default)

    def has(self, name):
        return name in self.fields

    def end(self):
        if self.fields:
            raise Difference(f"unknown fields {sorted(self.fields)}")


def text(value):
    """A text, or {"utf16": [...]} or {"repeat": "x", "times": 3}, or a list of such pieces."""
    if isinstance(value, list):
        return "".join(map(text, value))
    if not isinstance(value, dict):
        return value
    fields = Fields(value)
    if fields.has("utf16"):
        units = fields.take("utf16")
        made = b"".join(unit.to_bytes(2, "little") for unit in units).decode("utf-16-le", "surrogatepass")
    else:
        made = fields.take("repeat") * fields.take("times")
    fields.end()
    return made


def raw(value):
    """An argument of config.json: a number, a text, or an object that names what JSON cannot hold."""
    if not isinstance(value, dict):
        return value
    fields = Fields(value)
    if fields.has("float"):
        made = float(fields.take("float"))
    elif fields.has("seconds"):
        made = durations.Seconds(fields.take("seconds"))
    elif fields.has("bool"):
        made = fields.take("bool")
    else:
        made = {True: None}[fields.take("none")]
    fields.end()
    return made


def compare(what, got, wanted):
    if got != wanted:
        raise Difference(f"{what}: the vector says {wanted}, the model {got}")


def answer_of(call):
    """What a call answers as `expect` writes it, errors included."""
    try:
        return call()
    except (ConfigError, InvalidKeyError) as error:
        return {"error": error.kind, "message": str(error)}


def decision(made):
    return {
        "outcome": made.outcome,
        "reason": made.reason,
        "rule": made.rule,
        "retry_after_us": made.retry_after,
        "remaining": made.remaining,
        "reset_after_us": made.reset_after,
        "engaged": list(made.engaged),
    }


def made_rule(name, fields):
    secret = fields.take("secret_hex", None)
    made = limiter.rule(
        name.partition("#")[0],
        rates=fields.take("rates", None),
        threshold=fields.take("threshold", None),
        lockout_window=fields.take("lockout_window_us", None),
        ipv6_prefix=fields.take("ipv6_prefix", 64),
        secret=None if secret is None else bytes.fromhex(secret),
        by=fields.take("by", ()),
    )
    fields.end()
    return made


def made_key(rules, fields):
    rule = rules[fields.take("rule")]
    of_address = fields.has("address")
    made = rule.ip_key(fields.take("address")) if of_address else rule.key(*map(text, fields.take("parts")))
    fields.end()
    return made


class AttemptLimiterSteps:
    kind = "attempt_limiter"

    def __init__(self, fields):
        self.limiter = AttemptLimiter(
            fields.take("threshold"), fields.take("lockout_window_us"), fields.take("max_tracked_keys")
        )
        self.reservations = {}

    def attempt(self, step):
        reservation = self.limiter.reserve(text(step.take("key")), step.take("now"))
        if step.has("as"):
            self.reservations[step.take("as")] = reservation
        return decision(reservation.decision)

    def repeat(self, step):
        return decision(self.limiter.repeat(self.reservations[step.take("reservation")], step.take("now")))

    def cancel(self, step):
        return {"cancelled": self.limiter.cancel(self.reservations[step.take("reservation")], step.take("now"))}

    def locked(self, step):
        return {"locked": self.limiter.locked(text(step.take("key")), step.take("now"))}

    def retry_after(self, step):
        return {"retry_after_us": self.limiter.retry_after(text(step.take("key")), step.take("now"))}

    def refund(self, step):
        self.limiter.refund(text(step.take("key")), step.take("now"))
        return {}


class LimiterSteps:
    kind = "limiter"

    def __init__(self, fields):
        self.limiter = limiter.Limiter(fields.take("capacity"))
        self.rules = {name: made_rule(name, Fields(rule)) for name, rule in fields.take("rules").items()}
        self.attempts = {}

    def keys(self, step):
        return [made_key(self.rules, Fields(key)) for key in step.take("keys")]

    def allow(self, step):
        return decision(self.limiter.allow(self.keys(step), step.take("cost"), step.take("now")))

    def peek(self, step):
        return decision(self.limiter.peek(self.keys(step), step.take("cost"), step.take("now")))

    def attempt(self, step):
        name = step.take("as")
        attempt = self.limiter.attempt(self.keys(step), step.take("cost"), step.take("now"))
        self.attempts[name] = attempt
        return decision(attempt.decision)

    def extend(self, step):
        attempt = self.attempts[step.take("attempt")]
        return decision(attempt.extend(self.keys(step), step.take("cost"), step.take("now")))

    def success(self, step):
        attempt = self.attempts[step.take("attempt")]
        lists = [step.take(name) for name in ("forgive", "give_back", "forgive_address")]
        return {"settled": attempt.success(*lists, step.take("now"))}

    def cancel(self, step):
        return {"settled": self.attempts[step.take("attempt")].cancel(step.take("now"))}

    def failure(self, step):
        return {"settled": self.attempts[step.take("attempt")].failure()}

    def release(self, step):
        return {"settled": self.attempts[step.take("attempt")].release(step.take("now"))}

    def reset(self, step):
        return {"reset": self.limiter.reset(self.keys(step))}


class TokenBucketSteps:
    kind = "token_bucket"

    def __init__(self, fields):
        self.limiter = TokenBucket(fields.take("rate"), fields.take("window_us"), fields.take("capacity"))

    def allow(self, step):
        return {"allowed": self.limiter.allow(text(step.take("key")), step.take("now"))}

    def allow_n(self, step):
        return {"allowed": self.limiter.allow_n(text(step.take("key")), step.take("n"), step.take("now"))}

    def retry_after(self, step):
        return {"retry_after_us": self.limiter.retry_after(text(step.take("key")), step.take("now"))}

    def close(self, step):
        self.limiter.close()
        return {}


class FixedWindowSteps:
    kind = "fixed_window"

    def __init__(self, fields):
        self.limiter = FixedWindow(fields.take("limit"), fields.take("window_us"), fields.take("max_keys"))

    def consume(self, step):
        return decision(self.limiter.consume(text(step.take("key")), step.take("now")))

    def peek(self, step):
        return decision(self.limiter.peek(text(step.take("key")), step.take("now")))


STEPS = {steps.kind: steps for steps in (AttemptLimiterSteps, LimiterSteps, TokenBucketSteps, FixedWindowSteps)}


def start(description):
    """The limiter of a case, ready for its steps."""
    fields = Fields(description)
    steps = STEPS[fields.take("kind")](fields)
    fields.end()
    return steps


FIELDS = {
    "attempt_limiter": {
        "attempt": "key now as?",
        "repeat": "reservation now",
        "cancel": "reservation now",
        "locked": "key now",
        "retry_after": "key now",
        "refund": "key now",
        "reset": "key",
    },
    "limiter": {
        "allow": "keys cost now",
        "peek": "keys cost now",
        "attempt": "keys cost now as",
        "extend": "attempt keys cost now",
        "success": "attempt forgive give_back forgive_address now",
        "cancel": "attempt now",
        "failure": "attempt",
        "release": "attempt now",
        "reset": "keys",
    },
    "token_bucket": {"allow": "key now", "allow_n": "key n now", "retry_after": "key now", "reset": "key", "close": ""},
    "fixed_window": {"consume": "key now", "peek": "key now", "reset": "key"},
}


def check_fields(kind, step):
    """Every field of a step's operation is there, and no other."""
    known = {"size": "", "stats": "", **FIELDS[kind]}[step["op"]].split()
    given = set(step) - {"op", "expect"}
    allowed = {name.rstrip("?") for name in known}
    needed = {name for name in known if not name.endswith("?")}
    if not needed <= given <= allowed:
        raise Difference(f"a step {step['op']} takes the fields {known}, not {sorted(given)}")


def run_step(steps, step):
    """The answer to one step, its `expect` aside."""
    check_fields(steps.kind, step)
    fields = Fields(step)
    op = fields.take("op")

    def call():
        if op == "size":
            return {"size": steps.limiter.size()}
        if op == "stats":
            return steps.limiter.stats()
        if op == "reset" and not isinstance(steps, LimiterSteps):
            return {"reset": steps.limiter.reset(text(fields.take("key")))}
        return getattr(steps, op)(fields)

    return answer_of(call)


def steps_case(case):
    steps = start(case.take("limiter"))
    for number, step in enumerate(case.take("steps"), start=1):
        compare(f"step {number}", run_step(steps, step), step["expect"])


def error_of(case):
    """The error that the case expects: its kind and its message, or how the message starts."""
    if case.has("message_prefix"):
        return case.take("error"), case.take("message_prefix"), True
    return case.take("error"), case.take("message"), False


def fails(case, call):
    kind, message, prefix = error_of(case)
    got = answer_of(lambda: {"answer": call()})
    compare("error", got.get("error", got), kind)
    compare("message", got["message"][: len(message)] if prefix else got["message"], message)


def key_case(case):
    parts = [text(part) for part in case.take("parts")]
    secret = case.take("secret_hex", None)
    secret = None if secret is None else bytes.fromhex(secret)
    if case.has("error"):
        fails(case, lambda: keys.digest(parts, secret))
    else:
        compare("digest", keys.digest(parts, secret), case.take("digest"))


def network_case(case):
    address, prefix = case.take("address"), case.take("ipv6_prefix")
    if case.has("error"):
        fails(case, lambda: keys.network(address, prefix))
    else:
        compare("network", keys.network(address, prefix), case.take("network"))


def rates_case(case):
    written = case.take("text")
    if case.has("error"):
        fails(case, lambda: rates.parse(written))
        return
    parsed = rates.parse(written)
    compare("canonical", rates.canonical(parsed), case.take("canonical"))
    for span, most in case.take("max_in"):
        compare(f"max_in {span}", rates.max_in(parsed, span), most)


def config_case(case):
    fields = {name: raw(value) for name, value in case.take("make").items()}
    fails(case, lambda: make(**fields))


def make(kind, **fields):
    """Build what config.json describes; `cost` and `n` are the argument of a call."""
    if kind == "cost":
        return limiter.check_cost(fields["value"])
    if kind == "n":
        return TokenBucket().allow_n("a", fields["value"], 0)
    if kind == "round_up":
        return answers.check_round_up(fields["value"])
    if kind in ("rule", "strike_rule"):
        secret = fields.pop("secret_hex", None)
        return limiter.rule(**fields, secret=None if secret is None else bytes.fromhex(secret))
    kinds = {
        "attempt_limiter": AttemptLimiter,
        "limiter": limiter.Limiter,
        "token_bucket": TokenBucket,
        "fixed_window": FixedWindow,
    }
    return kinds[kind](**fields)


def http_case(case):
    rules = {name: made_rule(name, Fields(rule)) for name, rule in case.take("rules").items()}
    asked = [made_key(rules, Fields(key)) for key in case.take("keys")]
    fields = Fields(case.take("decision"))
    names = ("outcome", "reason", "rule", "retry_after_us", "remaining", "reset_after_us")
    decided = Decision(*[fields.take(name) for name in names])
    fields.end()
    said = answers.headers(decided, asked, case.take("round_up_us"), case.take("rate_limit"))
    compare("status", answers.status(decided), case.take("status"))
    compare("headers", said, case.take("headers"))


def preset(name):
    """A rule by the name of a preset, out of the vectors: its numbers stand nowhere else here."""
    (case,) = [case for case in PRESETS if case["preset"] == name]
    policy = re.fullmatch("s([0-9]+)/(.+)", case["policy"])
    if policy is None:
        return limiter.rule(name, rates=case["policy"], by=case["by"])
    return limiter.rule(name, threshold=int(policy[1]), lockout_window=policy[2], by=case["by"])


def preset_case(case):
    made = preset(case.take("preset")).policy
    case.take("policy")
    case.take("by")
    for span, most in case.take("max_in"):
        compare(f"max_in {span}", answers.max_in(made, span), most)
    claim = case.take("claim")
    if claim and answers.max_in(made, claim["span_us"]) > claim["at_most"]:
        raise Difference(f"the claim does not hold: {claim}")


def lint_case(case):
    rules = [preset(rule["preset"]) if "preset" in rule else named_rule(rule) for rule in case.take("rules")]
    told = [answers.told(text) for text in case.take("advice")]
    compare("advice", answers.advice(rules, case.take("forgive")), told)


def keys_for_case(case):
    rules = [preset(rule["preset"]) if "preset" in rule else named_rule(rule) for rule in case.take("rules")]
    named = {"address": case.take("address")} if case.has("address") else {}
    words = {word: text(value) for word, value in case.take("words").items()}
    if case.has("error"):
        fails(case, lambda: limiter.keys_for(rules, words, **named))
        return
    keys, leaves_out = limiter.keys_for(rules, words, **named)
    made = [{"rule": key.rule.name, "digest": key.digest, "is_address": key.of_address} for key in keys]
    compare("keys", made, [dict(key) for key in case.take("keys")])
    compare("leaves out", leaves_out, case.take("leaves_out"))


def named_rule(described):
    fields = Fields(described)
    return made_rule(fields.take("name"), fields)


def client_ip_case(case):
    trusted, header = case.take("trusted_proxies"), case.take("header")
    peer, lines = text(case.take("peer")), [text(line) for line in case.take("lines")]
    if case.has("error"):
        fails(case, lambda: clients.ClientIp(trusted, header))
    else:
        compare("address", clients.ClientIp(trusted, header).resolve(peer, lines), case.take("address"))


def email_case(case):
    written = text(case.take("text"))
    options = {name: case.take(name) for name in ("drop_tags", "drop_gmail_dots") if case.has(name)}
    canonical_case(case, "email", written, lambda email: canonical.email(email, **options))


def username_case(case):
    canonical_case(case, "username", text(case.take("text")), canonical.username)


def canonical_case(case, field, written, spelling):
    if case.has("error"):
        fails(case, lambda: spelling(written))
        return
    compare(field, spelling(written), case.take(field))
    compare("applied twice", spelling(spelling(written)), spelling(written))


PRESETS = json.loads((Path(__file__).parent.parent / "vectors" / "presets.json").read_text())["cases"]
FILES = {
    "client-ip": client_ip_case,
    "config": config_case,
    "email": email_case,
    "http": http_case,
    "keys": key_case,
    "keys-for": keys_for_case,
    "lint": lint_case,
    "network": network_case,
    "presets": preset_case,
    "rates": rates_case,
    "username": username_case,
}


def run_case(stem, case):
    fields = Fields(case)
    fields.take("name")
    FILES.get(stem, steps_case)(fields)
    fields.end()
