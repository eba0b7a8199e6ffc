"""The accounts and clients of the example. A real service keeps them in a database."""

import hashlib
import hmac
import logging
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool


class DatabaseDown(Exception):
    """The database is unreachable, so nothing was checked. A real service names the classes of its driver."""


class Account(NamedTuple):
    """An account, under its stored name."""

    email: str
    password_hash: bytes
    code: str


async def find(email: str) -> Account | None:
    """Look up an account. A real database may also find it under other names, such as other accents."""
    return ACCOUNTS.get(email)


async def verify_password(account: Account | None, password: str) -> bool:
    """Return whether this is the password. An unknown account costs a hash too, so that timing reveals nothing."""
    return await _verify(account and account.password_hash, password)


async def verify_client(client_id: str, secret: str) -> bool:
    """Return whether this is the secret of the client."""
    return await _verify(CLIENTS.get(client_id), secret)


def verify_code(account: Account | None, code: str) -> bool:
    """Return whether this is the one-time code that was sent to the account."""
    sent = account.code if account else "------"
    return hmac.compare_digest(sent.encode(), code.encode(errors="surrogatepass")) and account is not None


def send_reset(account: Account) -> None:
    """Send a link."""
    logging.getLogger("uvicorn.error").info("a link is on its way")


async def _verify(stored: bytes | None, secret: str) -> bool:
    # Hashing on the event loop would block every other login.
    hashed = await run_in_threadpool(_hash_of, secret)
    return hmac.compare_digest(hashed, stored or NOBODY) and stored is not None


def _hash_of(secret: str) -> bytes:
    # If you copy this, use a separate salt for each account.
    return hashlib.scrypt(secret.encode(errors="surrogatepass"), salt=b"a salt", n=2**14, r=8, p=1)


NOBODY = bytes(64)
ANN = Account("ann@example.com", _hash_of("correct horse battery staple"), "271828")
BOB = Account("bob@example.com", _hash_of("tall trees hold many birds"), "314159")
ACCOUNTS = {account.email: account for account in (ANN, BOB)}
CLIENTS = {"billing": _hash_of("secret of billing")}
