"""A service with the four endpoints that attackers guess at: login, forgotten password, one-time code, token.

Run: ``uvicorn app:app --no-proxy-headers``. LOCKOUT_WINDOW is how long the fifth wrong password locks, TRUSTED_PROXIES
lists the addresses and networks of your own proxies, separated by commas, and REDIS_URL names the Redis in which
several workers share one budget.
"""

import os
import secrets
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl

import accounts
from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, Field, ValidationError

from doorkeep import ClientIp, Key, RedisStore, Rule, StrikeRule, aio, canonical_email, keys_for, presets
from doorkeep.fastapi import AddressLimit, client_address, guard, install, lifespan, responses

# A wide rule for everything that one address posts. Each endpoint has its own narrow rules.
post_ip = Rule("post-ip", "600/1m", by=("address",))
login_account_ip = StrikeRule(
    "login-account-ip",
    threshold=5,
    lockout_window=os.environ.get("LOCKOUT_WINDOW", "15m"),
    by=("account", "address"),
)
# The client first: the rule on the account, which anybody can fill, must not be the first to deny.
login_rules = [presets.login_ip, login_account_ip, presets.login_account]
reset_rules = [presets.reset_ip, presets.reset_send]
code_rules = [presets.otp_ip, presets.otp_verify]

redis_url = os.environ.get("REDIS_URL")
limiter = aio.Limiter(store=RedisStore(redis_url, prefix="fastapi-login") if redis_url else None)
client_ip = ClientIp(trusted_proxies=[proxy for proxy in os.environ.get("TRUSTED_PROXIES", "").split(",") if proxy])

app = FastAPI(lifespan=lifespan(limiter))
install(app)
app.add_middleware(
    AddressLimit,
    limiter=limiter,
    rules=[post_ip],
    client_ip=client_ip,
    applies=lambda connection: connection.scope.get("method") == "POST",
)

ClientAddress = Annotated[str | None, Depends(client_address(client_ip))]
# Bounded, so that a client cannot make the service hash a password of ten megabytes.
Secret = Annotated[str, Field(max_length=1024)]


class Credentials(BaseModel):
    """The fields that the page sends."""

    email: str
    password: Secret


class Forgotten(BaseModel):
    """The account whose password was forgotten."""

    email: str


class Code(BaseModel):
    """A one-time code and its account."""

    email: str
    code: Secret


class Client(BaseModel):
    """A machine that asks for a token."""

    client_id: str
    client_secret: Secret


async def credentials(request: Request) -> Credentials:
    """Read JSON from the page's script, or a form from a browser without JavaScript."""
    body = await request.body()
    try:
        if is_form(request):
            return Credentials.model_validate(dict(parse_qsl(body.decode(errors="replace"))))
        return Credentials.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def is_form(request: Request) -> bool:
    """Return whether a browser sent the page's form without its script."""
    return request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")


Sent = Annotated[Credentials, Depends(credentials)]


# Keys are built before any account is looked up. An invalid email is answered with 400.
def login_keys(address: ClientAddress, sent: Sent) -> list[Key]:
    return keys_for(login_rules, address=address, account=canonical_email(sent.email))


def reset_keys(address: ClientAddress, forgotten: Forgotten) -> list[Key]:
    return keys_for(reset_rules, address=address, email=canonical_email(forgotten.email))


def code_keys(address: ClientAddress, code: Code) -> list[Key]:
    return keys_for(code_rules, address=address, account=canonical_email(code.email))


async def subject(client: Client) -> str:
    """Authenticate a client. Secrets are long and random, so the wide rule is enough before this."""
    if not await accounts.verify_client(client.client_id, client.client_secret):
        raise HTTPException(401, "Unknown client")
    return client.client_id


Subject = Annotated[str, Depends(subject)]


# Counted after the client was authenticated: no other client can spend its budget.
def subject_keys(subject: Subject) -> list[Key]:
    return keys_for([presets.token_issue], subject=subject)


# An attempt stays counted unless it is settled. The database being down is not a guess; every other exception may be.
LoginAttempt = Annotated[aio.Attempt, Depends(guard(limiter, keys=login_keys, give_back_on=accounts.DatabaseDown))]
ResetAttempt = Annotated[aio.Attempt, Depends(guard(limiter, keys=reset_keys))]
CodeAttempt = Annotated[aio.Attempt, Depends(guard(limiter, keys=code_keys, give_back_on=accounts.DatabaseDown))]
TokenAttempt = Annotated[aio.Attempt, Depends(guard(limiter, keys=subject_keys))]


@app.get("/")
def page() -> HTMLResponse:
    return HTMLResponse(Path(__file__).with_name("login.html").read_text(encoding="utf-8"))


# The guard answers a denied attempt with 429 and Retry-After. The attempt is already counted in the endpoint.
@app.post("/login", response_model=None, responses=responses)
async def login(
    request: Request, sent: Sent, address: ClientAddress, attempt: LoginAttempt
) -> Response | dict[str, str]:
    email = canonical_email(sent.email)
    account = await accounts.find(email)
    # Whichever name found the account, its own budget is spent. A denial here is answered like a wrong password.
    if account and not await attempt.extend(*keys_for(login_rules, address=address, account=account.email)):
        account = None
    if not await accounts.verify_password(account, sent.password):
        await attempt.failure()  # from here on, no error gives the guess back
        if is_form(request):
            return RedirectResponse("/?wrong", 302)
        raise HTTPException(401, "Wrong email or password")
    # Forgive only what nobody else can have filled; the other rules get this one attempt back.
    await attempt.success(forgive=[login_account_ip], give_back=[presets.login_ip, presets.login_account])
    return RedirectResponse("/?welcome", 302) if is_form(request) else {"welcome": email}


# The answer is the same for everybody, and there is nothing to settle: each requested mail counts.
@app.post("/forgot-password", status_code=202, responses=responses)
async def forgot_password(forgotten: Forgotten, attempt: ResetAttempt, background: BackgroundTasks) -> dict[str, str]:
    background.add_task(send_reset, canonical_email(forgotten.email), attempt)
    return {"message": "If there is such an account, a mail is on its way"}


# Runs after the response, so that timing reveals nothing. All names of one mailbox share its budget.
async def send_reset(email: str, attempt: aio.Attempt) -> None:
    account = await accounts.find(email)
    if account and await attempt.extend(*keys_for(presets.reset_send, email=account.email)):
        accounts.send_reset(account)


@app.post("/otp", responses=responses)
async def verify_code(code: Code, address: ClientAddress, attempt: CodeAttempt) -> dict[str, str]:
    email = canonical_email(code.email)
    account = await accounts.find(email)
    if account and not await attempt.extend(*keys_for(code_rules, address=address, account=account.email)):
        account = None
    if not accounts.verify_code(account, code.code):
        await attempt.failure()
        raise HTTPException(401, "Wrong code")
    # Give back, do not forgive: the owner's success must not hand a fresh budget to someone else who is guessing.
    await attempt.success(give_back=[presets.otp_ip, presets.otp_verify])
    return {"verified": email}


@app.post("/token", responses=responses)
async def token(attempt: TokenAttempt) -> dict[str, str]:
    # The middleware and the guard share one attempt: an authenticated client does not spend the wide rule.
    await attempt.success(give_back=[post_ip])
    return {"access_token": secrets.token_urlsafe(32), "token_type": "Bearer"}


# FastAPI's default response repeats what was sent: passwords, and values that cannot be serialized.
@app.exception_handler(RequestValidationError)
async def malformed(request: Request, error: Any) -> JSONResponse:
    return JSONResponse({"detail": "Bad request"}, 400)
