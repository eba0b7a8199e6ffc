"""Limiter: several keys in one call, each under a Rule or a StrikeRule, and the attempt that is settled once.

Knows nothing of tables. Invariant: what a call counted is given back or forgiven at most once.
"""

from dataclasses import dataclass

import rates as rates_text
from durations import duration
from engine import Engine, Policy
from errors import MAX_COST, MAX_TABLE, MAX_THRESHOLD, ConfigError, InvalidKeyError, timestamp, whole
from keys import digest, network

MAX_KEYS = 16
MAX_RULES = 1024
RULE_NAME = set("abcdefghijklmnopqrstuvwxyz0123456789-")


@dataclass(frozen=True)
class Rule:
    policy: Policy
    ipv6_prefix: int
    secret: bytes | None
    by: tuple

    @property
    def name(self):
        return self.policy.name

    def key(self, *parts):
        return Key(self, digest(parts, self.secret), self.by == ("address",))

    def ip_key(self, address):
        return Key(self, digest([network(address, self.ipv6_prefix)], self.secret), True)

    def agrees_with(self, other):
        return (self.policy, self.ipv6_prefix, self.secret) == (other.policy, other.ipv6_prefix, other.secret)


@dataclass(frozen=True)
class Key:
    rule: Rule
    digest: str
    of_address: bool


def rule(name, *, rates=None, threshold=None, lockout_window=None, ipv6_prefix=64, secret=None, by=()):
    """A Rule when `rates` is given, else a StrikeRule."""
    if not isinstance(name, str) or not 1 <= len(name) <= 32 or not set(name) <= RULE_NAME:
        raise ConfigError(f"rule name must match [a-z0-9-]{{1,32}}, name=`{name}`")
    if rates is not None:
        policy = Policy(name, rates=rates_text.parse(rates))
    else:
        threshold = whole("threshold", 1, MAX_THRESHOLD, threshold)
        policy = Policy(name, threshold=threshold, window=duration("lockout window", lockout_window))
    prefix = whole("ipv6 prefix", 32, 128, ipv6_prefix)
    if secret is not None and len(secret) < 16:
        raise ConfigError(f"secret must be at least 16 bytes, bytes={len(secret)}")
    return Rule(policy, prefix, secret, tuple(by))


def keys_for(rules, words, address=...):
    """The keys of a request, and whether a rule was left out because the request has no address."""
    made, left_out = [], False
    for one in rules:
        if not one.by:
            raise ConfigError(f"a rule must say what it is keyed by, rule=`{one.name}`")
        if "address" in one.by and address is ...:
            raise ConfigError(f"a rule keyed by the address needs an address, or none by name, rule=`{one.name}`")
        if "address" in one.by and address is None:
            left_out = True
        elif one.by == ("address",):
            made.append(one.ip_key(address))
        else:
            made.append(one.key(*[part_of(one, word, address, words) for word in one.by]))
    if not made:
        raise InvalidKeyError("no key is left: the address is missing, and there is no rule without it")
    return made, left_out


def part_of(one, word, address, words):
    if word == "address":
        return network(address, one.ipv6_prefix)
    if not words.get(word):
        raise InvalidKeyError(f"a key needs a text for each word of its rule, rule=`{one.name}`, word=`{word}`")
    return words[word]


class Attempt:
    """One call's counted keys, which stay counted unless it is settled."""

    def __init__(self, limiter):
        self.limiter = limiter
        self.decision = None
        self.checks = []
        self.address_rules = set()
        self.addresses = set()
        self.charges = []
        self.settled = False

    def extend(self, keys, cost, now):
        """Count further keys under this attempt; those that it holds are not asked or counted again."""
        cost, now, checks = check_cost(cost), timestamp(now), self.limiter.checks(keys)
        self.note_addresses([key for key in keys if (key.rule.policy, key.digest) in self.checks])
        fresh = [check for check in checks if check not in self.checks]
        if not fresh or not self.decision.allowed:
            return self.decision
        return self.count(keys, fresh, cost, now)

    def count(self, keys, checks, cost, now):
        decision, charges = self.limiter.engine.decide(checks, now, cost, self)
        if decision.allowed:
            self.hold(keys, checks, charges)
        return decision

    def hold(self, keys, checks, charges):
        self.checks += checks
        self.note_addresses(keys)
        self.charges += charges

    def note_addresses(self, keys):
        self.addresses |= {(key.rule.policy, key.digest) for key in keys if key.of_address}
        self.address_rules |= {key.rule.name for key in keys if key.of_address}

    def success(self, forgive, give_back, forgive_address, now):
        if not self.open:
            return False
        self.check_lists(forgive, give_back, forgive_address)
        self.settled = True
        for policy, key in self.checks:
            if policy.name in [*forgive, *forgive_address]:
                self.limiter.engine.reset(policy, key)
            if policy.name in give_back:
                self.give_back(policy, key, now)
        return True

    def cancel(self, now):
        if not self.open:
            return False
        self.settled = True
        for policy, key in self.checks:
            self.give_back(policy, key, now)
        return True

    def failure(self):
        if not self.open:
            return False
        self.settled = True
        return True

    def release(self, now):
        """Give back what a failure of the application ended, but not what was counted on an address alone."""
        if not self.open:
            return False
        self.settled = True
        for check in self.checks:
            if check not in self.addresses:
                self.give_back(*check, now)
        return True

    @property
    def open(self):
        """Whether there is anything to settle: it was admitted and was not settled yet."""
        return self.decision.allowed and not self.settled

    def check_lists(self, forgive, give_back, forgive_address):
        named = [*set(forgive), *set(give_back), *set(forgive_address)]
        for name in named:
            if named.count(name) > 1:
                raise ConfigError(
                    f"a rule stands in more than one of forgive, give back and forgive address, rule=`{name}`"
                )
            if name in forgive and name in self.address_rules:
                raise ConfigError(
                    f"the rule is keyed by an address, name it under forgive address to forgive it, rule=`{name}`"
                )

    def give_back(self, policy, key, now):
        engine = self.limiter.engine
        for charge in self.charges:
            rule, _, charged = charge.place
            if (rule, charged) == (policy.name, key):
                engine.windows.give_back(charge, timestamp(now))
        if policy.threshold:
            engine.table(policy).cancel(key, self, timestamp(now))


class Limiter:
    def __init__(self, capacity=100_000):
        self.engine = Engine(whole("capacity", 1, MAX_TABLE, capacity))
        self.rules = {}

    def allow(self, keys, cost, now):
        return self.attempt(keys, cost, now).decision

    def attempt(self, keys, cost, now):
        cost, now, checks = check_cost(cost), timestamp(now), self.checks(keys)
        attempt = Attempt(self)
        attempt.decision = attempt.count(keys, checks, cost, now)
        return attempt

    def peek(self, keys, cost, now):
        decision, _ = self.engine.decide(self.checks(keys), timestamp(now), check_cost(cost), store=False)
        return decision

    def checks(self, keys):
        """The keys of one call as (policy, digest), a key that is named twice once."""
        if not 1 <= len(keys) <= MAX_KEYS:
            raise ConfigError(f"a call takes 1 to {MAX_KEYS} keys, keys={len(keys)}")
        known = dict(self.rules)
        for key in keys:
            if not known.setdefault(key.rule.name, key.rule).agrees_with(key.rule):
                raise ConfigError(
                    f"rules of one name must agree in kind, policy, prefix length and secret, rule=`{key.rule.name}`"
                )
            if len(known) > MAX_RULES:
                raise ConfigError(f"a limiter knows at most {MAX_RULES} rules, rule=`{key.rule.name}`")
        self.rules = known
        return list(dict.fromkeys((key.rule.policy, key.digest) for key in keys))

    def reset(self, keys):
        for policy, key in self.checks(keys):
            self.engine.reset(policy, key)
        return True

    def size(self):
        return self.engine.size()

    def stats(self):
        return self.engine.stats()


def check_cost(cost):
    return whole("cost", 0, MAX_COST, cost)
