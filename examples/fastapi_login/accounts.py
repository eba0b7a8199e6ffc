"""The accounts and clients of the example; in a real service all of it is in a database."""

import hashlib
import hmac
import logging

from starlette.concurrency import run_in_threadpool


async def verify_password(email: str, password: str) -> bool:
    """Whether this is the password. Unknown accounts cost a hash, too, so that the time tells nothing."""
    return await _verify(ACCOUNTS, email, password)


async def verify_client(client_id: str, secret: str) -> bool:
    """Whether this is the secret of the client."""
    return await _verify(CLIENTS, client_id, secret)


def verify_code(email: str, code: str) -> bool:
    """Whether this is the one-time code that was sent to the account."""
    sent = CODES.get(email, "------")
    return hmac.compare_digest(sent.encode(), code.encode(errors="surrogatepass")) and email in CODES


def send_reset(email: str) -> None:
    """Send a link if there is such an account, after the answer, so that its time tells nothing either."""
    if email in ACCOUNTS:
        logging.getLogger("uvicorn.error").info("a link is on its way")


async def _verify(known: dict[str, bytes], name: str, secret: str) -> bool:
    # Hashing would stop the event loop, and with it every other login.
    hashed = await run_in_threadpool(_hash_of, secret)
    return hmac.compare_digest(hashed, known.get(name, NOBODY)) and name in known


def _hash_of(secret: str) -> bytes:
    # Whoever copies this takes a salt of its own for each account.
    return hashlib.scrypt(secret.encode(errors="surrogatepass"), salt=b"a salt", n=2**14, r=8, p=1)


NOBODY = bytes(64)
ACCOUNTS = {
    "ann@example.com": _hash_of("correct horse battery staple"),
    "bob@example.com": _hash_of("tall trees hold many birds"),
}
CODES = {"ann@example.com": "271828", "bob@example.com": "314159"}
CLIENTS = {"billing": _hash_of("secret of billing")}
