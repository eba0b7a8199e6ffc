"""What a request says: the client's address, and the keys of rules.

Invariant: a look-up of the account has no place here; keys are made of what the client sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from doorkeep import Key, Rule, StrikeRule, canonical_email, keys_for
from doorkeep.django import conf

__all__ = ["client_address", "request_keys"]


def client_address(request: HttpRequest | None) -> str | None:
    """Give the address of the client, believing the proxies of the setting and nobody else.

    Parameters
    ----------
    request
        None gives None.

    Returns
    -------
    str or None
        None when the server knows no address, such as on a Unix socket.
    """
    if request is None:
        return None
    peer = request.META.get("REMOTE_ADDR") or None
    return conf.current().client_ip.resolve(peer, request.headers)


def request_keys(request: HttpRequest | None, *rules: str | Rule | StrikeRule, **values: Any) -> list[Key]:
    """Make the keys of `rules` for a request.

    Parameters
    ----------
    request
        Where ``address`` comes from.
    rules
        Rules, or names of rules of the setting.
    values
        The other words of their ``by``. An ``account`` is made one text as the setting says, an ``email`` as
        `canonical_email` does.

    Returns
    -------
    list of Key
        Rules keyed by an address are left out when there is none.

    Raises
    ------
    InvalidKeyError
        A value is missing, empty or not text: answered with 400.
    ConfigError
        There is no such rule, or it does not say what it is keyed by.
    """
    configuration = conf.current()
    asked = [configuration.rule(rule) if isinstance(rule, str) else rule for rule in rules]
    return list(keys_for(asked, address=client_address(request), **spelled(values)))


def spelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Make one text of all spellings of an account or an email. What is no text is left to be refused."""
    makers = {"account": conf.current().account, "email": canonical_email}
    return {
        word: makers[word](value) if word in makers and isinstance(value, str) else value
        for word, value in values.items()
    }


def inner(request: Any) -> Any:
    """Give the request of Django that another framework wrapped in its own."""
    wrapped = getattr(request, "_request", request)
    return wrapped if isinstance(wrapped, HttpRequest) else request
