"""Shared by the command and the admin: rules in words, and the key to unlock.

Invariant: the value of a key is never shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from doorkeep import Key, Rule, StrikeRule, keys_for
from doorkeep.django.requests import spelled

__all__ = ["key_for", "policy"]


def policy(rule: Rule | StrikeRule) -> str:
    """Return what a rule admits, in words."""
    if isinstance(rule, Rule):
        return str(rule.rates)
    return f"{rule.threshold} strikes, then locked for {rule.lockout_window}"


def key_for(rule: Rule | StrikeRule, values: Mapping[str, str]) -> Key:
    """Make the one key of `rule` for the words of its ``by``, spelled as a log-in spells them.

    Raises
    ------
    InvalidKeyError
        A word is missing, or the address is invalid.
    """
    texts = spelled(values)
    (key,) = keys_for([rule], address=texts.pop("address", None), **texts)
    return key
