"""What an application is told: answers over HTTP, and who would profit from a set of rules.

Knows rules and decisions and no limiter. Invariant: a header field names rules and numbers, nothing of a key.
"""

import re
from math import ceil

import durations
import rates as rates_text
from errors import ConfigError

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
GUESSED = {"account", "email", "username", "user"}
LASTING = GUESSED | {"subject"}
TOPICS = {
    "stands twice": "twice",
    "does not say what it is keyed by": "words",
    "tells IPv6 addresses of one network apart": "prefix",
    "is named after NIST": "nist",
    "nothing bounds an account": "no account",
    "nothing bounds one address alone": "no address",
    "is the only one on the account": "fresh combinations",
    "locks an account out": "lockout",
    "stands before the rules on the client": "order",
    "is the only defence of an account over a day": "long window",
    "guesses on one account pass in an hour": "asvs",
    "is not in the set": "forgiven: unknown",
    "is keyed by the address and forgiven": "forgiven: address",
    "is keyed by the account alone and forgiven": "forgiven: account",
}


def status(decision):
    if decision.allowed:
        return 200
    return 503 if decision.reason == "unavailable" else 429


def headers(decision, keys, round_up, rate_limit):
    unavailable = decision.reason == "unavailable"
    wait = decision.reset_after if decision.allowed else decision.retry_after
    seconds = 1 if unavailable else None if wait is None else ceil(wait / SECOND)
    concerned = [key for key in keys if decision.allowed or key.rule.name == decision.rule]
    known_address = concerned and all(key.of_address for key in concerned)
    if round_up and seconds is not None and not unavailable and not known_address:
        step = round_up // SECOND
        seconds = ceil(seconds / step) * step
    fields = {}
    if not decision.allowed and seconds is not None:
        fields["Retry-After"] = str(seconds)
    if rate_limit:
        policies = quota_policies(keys)
        if len(policies) != 1:
            name, together = "*", [f'"*";q={min(quota for quota, _ in policies.values())}'] if policies else []
        else:
            (name,), together = policies, []
        items = [f'"{each}";q={quota};w={window}' for each, (quota, window) in policies.items()] + together
        if items:
            fields["RateLimit-Policy"] = ", ".join(items)
        if not unavailable:
            until = "" if seconds is None else f";t={seconds}"
            fields["RateLimit"] = f'"{name}";r={decision.remaining}{until}'
    return fields


def check_round_up(value):
    step = durations.duration("round up", value)
    if step % SECOND:
        text = durations.text_of(step)
        raise ConfigError(f"round up must be whole seconds, at least 1s, value=`{text}`")


def quota_policies(keys):
    """Name to quota and window in seconds, in call order."""
    found = {}
    for policy in dict.fromkeys(key.rule.policy for key in keys):
        if policy.threshold:
            found[policy.name] = (policy.threshold, ceil(policy.window / SECOND))
            continue
        # Of one period the smallest count is the only one that can deny.
        counts = {}
        for rate in policy.rates:
            counts[rate.period] = min(rate.count, counts.get(rate.period, rate.count))
        for period, count in counts.items():
            name = policy.name if len(counts) == 1 else f"{policy.name}/{durations.text_of(period)}"
            found[name] = (count, ceil(period / SECOND))
    return found


def max_in(policy, span):
    """The most attempts that pass under a rule in any half-open span."""
    if policy.threshold:
        return policy.threshold * ceil(span / policy.window)
    return rates_text.max_in(policy.rates, span)


def told(text):
    """The rule, the topic and the number of a piece of advice."""
    name = re.match("rule `([^`]*)` ", text)[1]
    (topic,) = [topic for phrase, topic in TOPICS.items() if phrase in text]
    number = re.search("so ([0-9]+) guesses|lets ([0-9]+) guesses", text)
    return name, topic, number and int(number[1] or number[2])


def advice(rules, forgive):
    """What there is to tell of the rules of one endpoint: rule, topic and number."""
    said = []

    def say(rule, topic, number=None):
        said.append((getattr(rule, "name", rule), topic, number))

    for i, rule in enumerate(rules):
        if rule.name in [earlier.name for earlier in rules[:i]]:
            say(rule, "twice")
        if not rule.by:
            say(rule, "words")
        if "address" in rule.by and rule.ipv6_prefix > 64:
            say(rule, "prefix")
        if any(word.startswith("nist") for word in rule.name.split("-")):
            say(rule, "nist")
    addresses = [rule for rule in rules if rule.by == ("address",)]
    owners = [rule for rule in rules if rule.by and set(rule.by) <= LASTING]
    if all(rule.by for rule in rules):
        guessed = [rule for rule in rules if GUESSED & set(rule.by)]
        bounds = [rule for rule in guessed if rule in owners]
        if addresses and not guessed:
            say(addresses[0], "no account")
        if guessed and not addresses:
            say(guessed[0], "no address")
        if guessed and not bounds:
            say(guessed[0], "fresh combinations")
        clients = [i for i, rule in enumerate(rules) if "address" in rule.by]
        for i, rule in enumerate(rules):
            if rule in owners and not any(client < i for client in clients):
                if rule.policy.threshold:
                    say(rule, "lockout")
                elif clients:
                    say(rule, "order")
        if bounds:
            strikes = any(rule.policy.threshold for rule in bounds)
            longest = max((rate.period for rule in bounds for rate in rule.policy.rates), default=0)
            in_hour, in_day = (min(max_in(rule.policy, span) for rule in bounds) for span in (HOUR, DAY))
            if not strikes and longest < HOUR:
                say(bounds[0], "long window", in_day)
            elif in_hour > 100:
                say(bounds[0], "asvs", in_hour)
    for name in forgive:
        rule = next((rule for rule in rules if rule.name == name), None)
        if rule is None:
            say(name, "forgiven: unknown")
        elif rule in addresses:
            say(name, "forgiven: address")
        elif rule in owners:
            say(name, "forgiven: account")
    return said
