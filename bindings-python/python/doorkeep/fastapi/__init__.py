"""A guard for FastAPI endpoints: each request is an attempt, counted before the endpoint runs.

::

    limiter = aio.Limiter()
    ClientAddress = Annotated[str | None, Depends(client_address(ClientIp()))]

    def login_keys(address: ClientAddress, form: LoginForm) -> list[Key]:
        return keys_for(rules, address=address, account=canonical_email(form.email))

    LoginAttempt = Annotated[aio.Attempt, Depends(guard(limiter, keys=login_keys))]

    @app.post("/login", responses=responses)
    async def login(form: LoginForm, address: ClientAddress, attempt: LoginAttempt):
        account = await find(canonical_email(form.email))
        # Whatever name found the account, the attempt counts under its stored name, too.
        if account and not await attempt.extend(*keys_for(rules, address=address, account=account.email)):
            account = None  # answered like a wrong password
        if not await verify(account, form.password):
            raise HTTPException(401)
        await attempt.success(forgive=[login_account_ip])

    install(app)

The attempt stays counted unless the endpoint settles it, whatever it returns or raises, and even if the client
disconnects. `give_back_on` names the exceptions that report a failure of the application and give the attempt back.

What needs no FastAPI is in `doorkeep.starlette`, and can also be imported from here. `guards` has the dependency,
`comparing` checks that keys and endpoint read the same body, `openapi` describes denials.

Does no arithmetic and reads no clock. Invariant: the bytes of a denial depend on the decision alone.
"""

from doorkeep.fastapi.guards import guard
from doorkeep.fastapi.openapi import responses
from doorkeep.starlette import AddressLimit, attempt_for, client_address, install, lifespan

__all__ = ["AddressLimit", "attempt_for", "client_address", "guard", "install", "lifespan", "responses"]
