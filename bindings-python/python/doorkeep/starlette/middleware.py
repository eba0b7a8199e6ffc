"""Counts every request by its client's address, before it is routed.

Reads no body and knows no routes. Invariant: anything but a request or a websocket passes through unchanged, and an
admitted request passes through with only the attempt added to its scope.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from doorkeep import ClientIp, ConfigError, keys_for
from doorkeep.errors import AttemptDenied, InvalidKeyError
from doorkeep.starlette.answers import LostAddress, answer, refuse
from doorkeep.starlette.attempts import AnyLimiter, at_hand, check_limiter, count, offer
from doorkeep.starlette.fields import collecting_fields

if TYPE_CHECKING:
    from doorkeep._native import _AnyRule

_log = logging.getLogger("doorkeep")
_NOT_COUNTED = "a request was not counted: it has no address, and every rule is on the address"


class AddressLimit:
    """Pure ASGI middleware that counts each request under rules on the client's address, and answers denials itself.

    ::

        app.add_middleware(AddressLimit, limiter=limiter, rules=[presets.login_ip], client_ip=client_ip)

    The answer to a denial has the same bytes as that of the handlers that `install` adds. A websocket is counted when
    it connects. A request without an address, as over a Unix socket, is not counted, which is logged each time. A
    request whose address is lost, because the client has closed its connection, is refused. Guards of the same limiter
    share the attempt: an address that was counted here is not counted again. It stays counted whatever the application
    does, even if it fails; an endpoint may give it back with ``attempt.success(give_back=...)``.

    Middleware that is added later is outside. Put `CORSMiddleware` outside this one: it answers preflight requests
    before they are counted, and allows scripts of other origins to read a denial.

    Parameters
    ----------
    app
        The wrapped application.
    limiter
        A `doorkeep.Limiter` or a `doorkeep.aio.Limiter`.
    rules
        Rules made with ``by=("address",)``.
    client_ip
        How the client's address is found; by default it is the peer.
    cost
        How much a request spends of each rate.
    applies
        Which requests are counted; by default every one.
    rate_limit
        Whether to send ``RateLimit`` and ``RateLimit-Policy`` with every answer.

    Raises
    ------
    ConfigError
        `limiter` is not a limiter, there is no rule, or a rule is not keyed by the address alone.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limiter: AnyLimiter,
        rules: Iterable[_AnyRule],
        client_ip: ClientIp | None = None,
        cost: int = 1,
        applies: Callable[[HTTPConnection], bool] = lambda connection: True,
        rate_limit: bool = False,
    ) -> None:
        check_limiter(limiter)
        self.app = app
        self.limiter = limiter
        self.rules = tuple(rules)
        self.address_of = client_address(client_ip or ClientIp())
        self.cost = cost
        self.applies = applies
        self.rate_limit = rate_limit
        if not self.rules or any(rule.by != ("address",) for rule in self.rules):
            raise ConfigError(f"rules must be by the address alone, rules=`{', '.join(map(str, self.rules))}`")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the request, then pass it on or deny it."""
        if scope["type"] not in ("http", "websocket") or not self.applies(connection := HTTPConnection(scope)):
            await self.app(scope, receive, send)
            return
        if self.rate_limit and scope["type"] == "http":
            send = collecting_fields(scope, send)
        try:
            await self._count(connection)
        except (AttemptDenied, InvalidKeyError) as refused:
            response = answer(refused)
            if scope["type"] == "websocket":
                await refuse(WebSocket(scope, receive, send), response)
            else:
                await response(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _count(self, connection: HTTPConnection) -> None:
        address = self.address_of(connection)
        if address is None:
            _log.warning(_NOT_COUNTED, extra={"doorkeep_event": "not_counted"})
            return
        keys = keys_for(self.rules, address=address)
        scope, limiter = connection.scope, self.limiter
        counted = at_hand(scope, limiter)
        counted = await count(scope, limiter, keys, counted, cost=self.cost, round_up=None, rate_limit=self.rate_limit)
        offer(scope, limiter, counted)


def client_address(client_ip: ClientIp) -> Callable[[HTTPConnection], str | None]:
    """Make a function that returns the address of a request's client. It is also a dependency for FastAPI.

    ::

        ClientAddress = Annotated[str | None, Depends(client_address(ClientIp(trusted_proxies=["10.0.0.0/8"])))]

    Only `ClientIp` should read forwarding headers: run ``uvicorn --no-proxy-headers``.

    Parameters
    ----------
    client_ip
        How the client's address is found.

    Returns
    -------
    Callable
        Takes a request or a websocket and returns the address as a string, or None if there is none, as over a Unix
        socket. It raises `InvalidKeyError` if the address is lost because the client has closed its connection: rules
        on its address could not count it.
    """

    def address(connection: HTTPConnection) -> str | None:
        peer = connection.client
        if peer is None and _is_over_tcp(connection.scope):
            raise LostAddress
        return client_ip.resolve(peer.host if peer else None, connection.headers.raw)

    return address


def _is_over_tcp(scope: Scope) -> bool:
    # ASGI: the port is None for a Unix socket.
    server = scope.get("server")
    return server is not None and server[1] is not None
