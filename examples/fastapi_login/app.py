"""A service with the four endpoints that are guessed at: login, forgotten password, one-time code, token.

Run: ``uvicorn app:app --no-proxy-headers``. LOCKOUT_WINDOW is how long the fifth wrong password locks, TRUSTED_PROXIES
lists the addresses and networks of your own proxies, separated by commas, and REDIS_URL names the Redis that several
workers share one budget in.
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

# Wide, for everything that is posted from one address. The narrow rules are those of each endpoint.
post_ip = Rule("post-ip", "600/1m", by=("address",))
login_account_ip = StrikeRule(
    "login-account-ip",
    threshold=5,
    lockout_window=os.environ.get("LOCKOUT_WINDOW", "15m"),
    by=("account", "address"),
)
# The client first: an account that anybody can fill must not be the first to refuse.
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
# Bounded, so that nobody has passwords of ten megabytes hashed.
Secret = Annotated[str, Field(max_length=1024)]


class Credentials(BaseModel):
    """What the page sends."""

    email: str
    password: Secret


class Forgotten(BaseModel):
    """Whose password is forgotten."""

    email: str


class Code(BaseModel):
    """A one-time code, and whose it is."""

    email: str
    code: Secret


class Client(BaseModel):
    """A machine that asks for a token."""

    client_id: str
    client_secret: Secret


async def credentials(request: Request) -> Credentials:
    """Read JSON from the page's script, or a form from a browser that runs none."""
    body = await request.body()
    try:
        if is_form(request):
            return Credentials.model_validate(dict(parse_qsl(body.decode(errors="replace"))))
        return Credentials.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


def is_form(request: Request) -> bool:
    """Whether a browser sent the page's form by itself."""
    return request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")


Sent = Annotated[Credentials, Depends(credentials)]


# Keys are made before any account is looked up. A string that is not an email is answered with 400.
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


# Counted after the client is known: nobody else can spend its budget.
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


# The guard answers a denied attempt with 429 and Retry-After. In the endpoint the attempt is counted already.
@app.post("/login", response_model=None, responses=responses)
async def login(
    request: Request, sent: Sent, address: ClientAddress, attempt: LoginAttempt
) -> Response | dict[str, str]:
    email = canonical_email(sent.email)
    account = await accounts.find(email)
    # Whatever name found the account, its own budget is spent. Denied there, it is answered like a wrong password.
    if account and not await attempt.extend(*keys_for(login_rules, address=address, account=account.email)):
        account = None
    if not await accounts.verify_password(account, sent.password):
        await attempt.failure()  # no error after this gives the guess back
        if is_form(request):
            return RedirectResponse("/?wrong", 302)
        raise HTTPException(401, "Wrong email or password")
    # Forgiven is only what nobody else can have filled; the rest gets back this one attempt.
    await attempt.success(forgive=[login_account_ip], give_back=[presets.login_ip, presets.login_account])
    return RedirectResponse("/?welcome", 302) if is_form(request) else {"welcome": email}


# The same answer for everybody, and nothing to settle: each mail that was asked for counts.
@app.post("/forgot-password", status_code=202, responses=responses)
async def forgot_password(forgotten: Forgotten, attempt: ResetAttempt, background: BackgroundTasks) -> dict[str, str]:
    background.add_task(send_reset, canonical_email(forgotten.email), attempt)
    return {"message": "If there is such an account, a mail is on its way"}


# After the answer, so that its time reveals nothing. All names of one mailbox share its budget.
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
    # Given back, not forgiven: the owner's success must not hand a fresh budget to whoever guesses beside them.
    await attempt.success(give_back=[presets.otp_ip, presets.otp_verify])
    return {"verified": email}


@app.post("/token", responses=responses)
async def token(attempt: TokenAttempt) -> dict[str, str]:
    # One attempt for the middleware and the guard: a client that proved itself does not spend the wide rule.
    await attempt.success(give_back=[post_ip])
    return {"access_token": secrets.token_urlsafe(32), "token_type": "Bearer"}


# FastAPI's own answer repeats what was sent: passwords, and text that cannot be sent.
@app.exception_handler(RequestValidationError)
async def malformed(request: Request, error: Any) -> JSONResponse:
    return JSONResponse({"detail": "Bad request"}, 400)
