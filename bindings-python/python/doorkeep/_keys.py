"""The keys of a request, made from what each rule is keyed by.

The core makes them; this warns, once in a process, about requests for which rules are left out.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from types import EllipsisType

from doorkeep._native import _NO_ADDRESS, Key, Rule, StrikeRule, _keys_for

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
    socket, the rules on it are left out, and the logger ``doorkeep`` warns once.

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
    keys, leaves_out = _keys_for(rules, address, values)
    if leaves_out:
        _warn()
    return keys


def _warn() -> None:
    global _warned
    if _warned:
        return
    _warned = True
    import logging  # only here, since it would double the import time of the package

    logging.getLogger("doorkeep").warning(_NO_ADDRESS, extra={"doorkeep_event": "no_address"})
