"""The keys of a request, made from what each rule is keyed by.

Knows no framework and hashes nothing itself. Invariant: no rule gets a key that misses a part, and no rule is left out
without a line in the log.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from types import EllipsisType

from doorkeep._native import Key, Rule, StrikeRule, network
from doorkeep.errors import ConfigError, InvalidKeyError

TYPE_CHECKING = False  # without the module typing, which takes longer to import than this package
if TYPE_CHECKING:
    from doorkeep._native import _AnyRule

_warned = False


def keys_for(
    rules: "Rule | StrikeRule | Iterable[_AnyRule]",
    *,
    address: str | IPv4Address | IPv6Address | EllipsisType | None = ...,
    **values: str | None,
) -> list[Key]:
    """Return the key of each rule, made from the words of its ``by``.

    ``address`` in ``by`` is the network of the address, as wide as the rule says. Without an address, as over a Unix
    socket, the rules on it are left out, and the logger ``doorkeep`` says so once.

    Parameters
    ----------
    rules
        Rules that have a ``by``, such as ``limiter.rules.values()``.
    address
        The address of the client as `ClientIp.resolve` returns it, or `None`. Leave it out only if no rule needs it.
    **values
        The string for each other word, in its canonical spelling: ``account=canonical_email(form.email)``. Write an
        underscore for a hyphen. Words that no rule names are ignored.

    Returns
    -------
    list of Key
        In the order of the rules; at least one.

    Raises
    ------
    InvalidKeyError
        A word has no string, the address is invalid, or every rule is left out: answer 400.
    ConfigError
        A rule has no ``by``, or needs the address and ``address=`` was left out.

    Examples
    --------
    >>> from doorkeep import Rule, keys_for
    >>> rules = [Rule("login-ip", "20/1m", by=("address",)), Rule("login-account", "50/1h", by=("account",))]
    >>> [key.rule for key in keys_for(rules, address="203.0.113.9", account="ann@example.com")]
    ['login-ip', 'login-account']
    """
    is_named = address is not ...
    address = None if address is ... else address
    texts = {name.replace("_", "-"): value for name, value in values.items()}
    keys = []
    for rule in (rules,) if isinstance(rules, Rule | StrikeRule) else rules:
        if not rule.by:
            raise ConfigError(f"a rule must say what it is keyed by, rule=`{rule.name}`")
        if "address" in rule.by and not is_named:
            raise ConfigError(f"a rule keyed by the address needs an address, or none by name, rule=`{rule.name}`")
        if address is None and "address" in rule.by:
            _warn()
        elif address is not None and rule.by == ("address",):
            keys.append(rule.ip_key(address))
        else:
            keys.append(rule.key(*[_part(rule, word, address, texts) for word in rule.by]))
    if not keys:
        raise InvalidKeyError("no key is left: the address is missing, and there is no rule without it")
    return keys


def _part(
    rule: "_AnyRule", word: str, address: str | IPv4Address | IPv6Address | None, texts: dict[str, str | None]
) -> str:
    if word == "address" and address is not None:
        return network(address, rule.ipv6_prefix)
    text = texts.get(word)
    if not isinstance(text, str) or not text:
        raise InvalidKeyError(f"a key needs a text for each word of its rule, rule=`{rule.name}`, word=`{word}`")
    return text


def _warn() -> None:
    global _warned
    if _warned:
        return
    _warned = True
    import logging  # only here: it would double the time that importing the package takes

    text = "a request has no address: rules on the address are left out for such requests, the others stand"
    logging.getLogger("doorkeep").warning(text, extra={"doorkeep_event": "no_address"})
