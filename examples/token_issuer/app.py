"""A service that issues tokens: each subject has a budget, and each address a limit on wrong secrets.

Run: uvicorn --no-proxy-headers --app-dir examples/token_issuer app:app. The environment selects what keeps the
budget: PROVIDER is bucket (the default), window or quota; WINDOW is the time in which a bucket refills; REDIS_URL
shares the budget; ADDRESS_RATES limits wrong secrets per address.
"""

import hashlib
import hmac
import logging
import os
import secrets
from collections.abc import AsyncIterator
from typing import Annotated, Any

import jwt
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from providers import DailyQuota, SharedWindow
from pydantic import BaseModel
from tokens import Tokens

from doorkeep import (
    Attempt,
    ClientIp,
    IssueGuard,
    Limiter,
    RateLimitProvider,
    RedisStore,
    Rule,
    TokenBucket,
)
from doorkeep.fastapi import attempt_for, client_address, install

RATE = 100  # tokens for each subject in each WINDOW
WINDOW = os.environ.get("WINDOW", "1m")
redis = os.environ.get("REDIS_URL")
store = RedisStore(redis, prefix="token-issuer") if redis else None

# Client secrets are long and random, so a wide rule is enough: it keeps the noise down. A password needs the presets.
token_ip = Rule("token-ip", os.environ.get("ADDRESS_RATES", "600/1m"), by=("address",))
limiter = Limiter(store=store)
client_ip = ClientIp()  # behind your own proxies: trusted_proxies=["10.0.0.0/8"], or ["unix"] for nginx on a socket


def provider() -> RateLimitProvider:
    """Create the provider that keeps the subjects' budgets."""
    name = os.environ.get("PROVIDER", "bucket")
    if name == "bucket":
        return TokenBucket(rate=RATE, window=WINDOW, name="token-bucket", store=store)
    if name == "window" and store is not None:
        return SharedWindow(RATE, WINDOW, store)
    if name == "quota":
        return DailyQuota(RATE)
    raise SystemExit("PROVIDER must be bucket, window (with REDIS_URL) or quota")


tokens = Tokens(os.environ.get("SIGNING_KEY", secrets.token_hex()).encode(), IssueGuard(provider()))
app = FastAPI()
install(app)  # answers 429 for a denied address, with Retry-After, and for a subject that has used up its budget


@app.exception_handler(RequestValidationError)
async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
    """Answer a malformed body without repeating it: it may contain a secret."""
    return JSONResponse({"detail": "Bad request"}, 400)


async def admitted(
    request: Request, address: Annotated[str | None, Depends(client_address(client_ip))]
) -> AsyncIterator[Attempt | None]:
    """Count only the address: the subject is not known before its secret is checked.

    A client without an address, as on a Unix socket, is not counted. One whose address is lost has been rejected.
    """
    if address is None:
        logging.getLogger("uvicorn.error").warning("a request was not counted: it has no address")
        yield None
        return
    async with attempt_for(request, limiter, token_ip.ip_key(address)) as attempt:
        yield attempt


Admitted = Annotated[Attempt | None, Depends(admitted)]


class Client(BaseModel):
    """A client and its secret."""

    client_id: str
    client_secret: str


class Renewal(BaseModel):
    """A refresh token to exchange."""

    refresh_token: str


@app.post("/token")
def issue(client: Client, attempt: Admitted) -> dict[str, str]:
    """Issue tokens to a client that knows its secret. A wrong secret stays counted on the address."""
    if not known(client):
        raise HTTPException(401, "Unknown client")
    if attempt:
        attempt.success(give_back=[token_ip])
    return tokens.issue({"sub": client.client_id})


@app.post("/refresh")
def refresh(renewal: Renewal, attempt: Admitted) -> dict[str, str]:
    """Issue new tokens for a refresh token, from the same budget as `issue`."""
    try:
        issued = tokens.refresh(renewal.refresh_token)
    except jwt.InvalidTokenError:
        raise HTTPException(401, "Bad token") from None
    if attempt:
        attempt.success(give_back=[token_ip])
    return issued


@app.post("/guest")
def guest(attempt: Admitted) -> dict[str, str]:
    """Issue tokens to a guest: claims without a subject are not a key, so only the address is counted."""
    return tokens.issue({})


@app.get("/whoami")
def whoami(authorization: Annotated[str, Header()]) -> dict[str, Any]:
    """Return the subject of a token. Reading is never limited: every request of every service does it."""
    try:
        claims = tokens.read(authorization.removeprefix("Bearer "), "access")
    except jwt.InvalidTokenError:
        raise HTTPException(401, "Bad token") from None
    return {"sub": claims.get("sub")}


def known(client: Client) -> bool:
    """Compare secrets by digest and in constant time, even for unknown clients."""
    given = hashlib.sha256(client.client_secret.encode(errors="surrogatepass")).hexdigest()
    return hmac.compare_digest(given, CLIENTS.get(client.client_id, NOBODY)) and client.client_id in CLIENTS


# A real service has the digests in its database; the secrets are random, and only the clients have them.
NOBODY = "0" * 64
CLIENTS = {name: hashlib.sha256(f"secret of {name}".encode()).hexdigest() for name in ("billing", "reports")}
