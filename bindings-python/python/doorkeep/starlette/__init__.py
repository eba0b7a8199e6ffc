"""Attempt limits for Starlette, which the guard for FastAPI builds on.

::

    limiter = aio.Limiter()
    client_ip = ClientIp(trusted_proxies=["10.0.0.0/8"])
    address_of = client_address(client_ip)

    async def login(request: Request) -> Response:
        form, address = await request.json(), address_of(request)
        email = canonical_email(form["email"])
        async with attempt_for(request, limiter, *keys_for(rules, address=address, account=email)) as attempt:
            account = await find(email)
            # Whatever name found the account, the attempt counts under its stored name, too.
            if account and not await attempt.extend(*keys_for(rules, address=address, account=account.email)):
                account = None  # answered like a wrong password
            if not await verify(account, form["password"]):
                raise HTTPException(401)
            await attempt.success(forgive=[presets.login_account_ip])
        return Response()

    app = Starlette(
        routes=[Route("/login", login, methods=["POST"])],
        middleware=[Middleware(AddressLimit, limiter=limiter, rules=[presets.login_ip], client_ip=client_ip)],
        lifespan=lifespan(limiter),
    )
    install(app)

`attempts` counts a request, `middleware` counts it by its address before it is routed, `answers` has the answers to
denials and `fields` header fields for other answers, `opening` closes stores when the application ends.

Does no arithmetic, reads no clock and opens no connection. Invariant: the bytes of a denial depend on the decision
alone.
"""

from doorkeep.starlette.answers import install
from doorkeep.starlette.attempts import attempt_for
from doorkeep.starlette.middleware import AddressLimit, client_address
from doorkeep.starlette.opening import lifespan

__all__ = ["AddressLimit", "attempt_for", "client_address", "install", "lifespan"]
