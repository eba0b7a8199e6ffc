"""Reads from a request the client's address, and makes the keys of rules.

A server may have no address, as on a Unix socket, or may have lost it: under ASGI, a client that resets its connection
has no address any more. Invariant: a request whose address is lost gets no key at all. Accounts are not looked up here;
keys are made of what the client sent.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from doorkeep import InvalidKeyError, Key, Rule, StrikeRule, canonical_email, keys_for
from doorkeep.django import conf

__all__ = ["client_address", "request_keys", "warn_uncounted"]

_logger = logging.getLogger("doorkeep")


def client_address(request: HttpRequest | None) -> str | None:
    """Return the address of the client, trusting only the proxies of the setting.

    Parameters
    ----------
    request
        None, as in a management command, has no address.

    Returns
    -------
    str or None
        None if the server has no address, such as on a Unix socket whose proxy the setting does not name.

    Raises
    ------
    InvalidKeyError
        The client has reset the connection, and its address is lost: answered with 400.
    """
    if request is None:
        return None
    peer = request.META.get("REMOTE_ADDR") or None
    if peer is None and _is_over_tcp(request):
        _logger.debug("a client has reset its connection: the request is refused", extra={"doorkeep_event": "lost"})
        raise InvalidKeyError("the client has gone, and its address with it")
    return conf.current().client_ip.resolve(peer, request.headers)


def request_keys(request: HttpRequest | None, *rules: str | Rule | StrikeRule, **values: Any) -> list[Key]:
    """Return the keys of `rules` for a request.

    Parameters
    ----------
    request
        The request that ``address`` is read from.
    rules
        Rules, or names of rules of the setting.
    values
        The other words of their ``by``. An ``account`` is spelled as the setting says, an ``email`` by
        `canonical_email`.

    Returns
    -------
    list of Key
        Rules keyed by an address are left out when there is none.

    Raises
    ------
    InvalidKeyError
        A value is missing, empty or not a string, or the address of the client is lost: answered with 400.
    ConfigError
        There is no such rule, or it has no ``by``.
    """
    configuration = conf.current()
    resolved = [configuration.rule(rule) if isinstance(rule, str) else rule for rule in rules]
    return list(keys_for(resolved, address=client_address(request), **spelled(values)))


def warn_uncounted(what: str) -> None:
    """Log that nothing is counted for a request, each time."""
    text = f"{what} is not counted: it has no address, and every rule for it is keyed by one"
    _logger.warning(text, extra={"doorkeep_event": "uncounted"})


def spelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Make one spelling of each account and email. Other types are left unchanged, to be refused later."""
    makers = {"account": conf.current().account, "email": canonical_email}
    return {
        word: makers[word](value) if word in makers and isinstance(value, str) else value
        for word, value in values.items()
    }


def inner(request: Any) -> Any:
    """Return Django's request, also from the wrapper of another framework."""
    wrapped = getattr(request, "_request", request)
    return wrapped if isinstance(wrapped, HttpRequest) else request


def _is_over_tcp(request: Any) -> bool:
    # Over ASGI a Unix socket has no port. Over WSGI only gunicorn reports its socket. WSGI servers read the address
    # when they accept a connection, so none of them was seen to lose it.
    if (scope := getattr(request, "scope", None)) is not None:
        server = scope.get("server")
        return server is not None and server[1] is not None
    listening = request.META.get("gunicorn.socket")
    return getattr(listening, "family", None) in (socket.AF_INET, socket.AF_INET6)
