"""A login endpoint in FastAPI that doorkeep guards, its attempts counted in memory or in the Redis at REDIS_URL.

Run by `make demo`, which attacks it. By hand: uvicorn --app-dir demo fastapi_login:app
"""

import asyncio
import os
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel

from doorkeep import Key, RedisStore, Rule, StrikeRule, aio, keys_for
from doorkeep.fastapi import guard, install

login_ip = Rule("login-ip", "20/1m,200/1h", by=("address",))
login_account_ip = StrikeRule("login-account-ip", threshold=5, lockout_window="15m", by=("account", "address"))
login_account = Rule("login-account", "50/1h", by=("account",))
login_rules = [login_ip, login_account_ip, login_account]

redis = os.environ.get("REDIS_URL")  # the same in every service that shall share these rules
prefix = os.environ.get("DEMO_PREFIX", "demo")
on_error: Any = os.environ.get("DEMO_ON_ERROR", "local")
store = RedisStore(redis, prefix=prefix, on_error=on_error) if redis else None
limiter = aio.Limiter(store=store, capacity=int(os.environ.get("DEMO_CAPACITY", "100000")))

app = FastAPI()
install(app)  # answers denied attempts: 429 with Retry-After, 503 when the store is unavailable


class LoginForm(BaseModel):
    """What the login page sends."""

    email: str
    password: str


def login_keys(request: Request, form: LoginForm) -> list[Key]:
    """Return everything that a login counts on. Looks nothing up, so that unknown accounts are treated alike."""
    return keys_for(login_rules, address=client_address(request), account=form.email)


@app.post("/login")
async def login(
    request: Request, form: LoginForm, attempt: Annotated[aio.Attempt, Depends(guard(limiter, keys=login_keys))]
) -> dict[str, str]:
    """Log in. Whoever gets here was admitted and counted; only a right password takes the count back."""
    verified["alone"] += attempt.decision.degraded
    account = find(form.email)
    # Whatever name found the account, its own budget is spent. Denied there, it is answered like a wrong password.
    if account and not await attempt.extend(
        *keys_for(login_rules, address=client_address(request), account=account.email)
    ):
        account = None
    if not await verify(account, form.password):
        raise HTTPException(401, "Wrong email or password")
    await attempt.success(forgive=[login_account_ip], give_back=[login_ip, login_account])
    return {"welcome": form.email}


def client_address(request: Request) -> str:
    """Return the address of the client."""
    # A real service takes the address of the socket's peer, request.client.host: anybody can write a header.
    # The demo trusts one because its attacker plays thousands of clients from one machine.
    return request.headers.get("x-demo-client", "")


class Account(NamedTuple):
    """An account, under the name that it is stored by."""

    email: str
    password: str


ACCOUNTS = {"ann@example.com": Account("ann@example.com", "correct horse battery staple")}
verified = {"right": 0, "wrong": 0, "alone": 0}


def find(email: str) -> Account | None:
    """Stand in for a query, which may find an account by other names, too."""
    return ACCOUNTS.get(email)


async def verify(account: Account | None, password: str) -> bool:
    """Stand in for a slow password hash, and count how many passwords were really looked at."""
    await asyncio.sleep(0.005)
    right = account is not None and account.password == password
    verified["right" if right else "wrong"] += 1
    return right


@app.get("/demo")
async def demo() -> dict[str, int]:
    """Tell the attacker what its attack came to."""
    unanswered = sum(limiter.stats()["store_failed"].values())
    return {**verified, "held": len(limiter), "unanswered": unanswered}
