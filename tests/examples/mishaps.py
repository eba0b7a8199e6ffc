"""The FastAPI login with an account database that has good days and bad ones: by the password that is sent.

Run as ``uvicorn mishaps:app`` with this folder and the example's on the path. "crash" makes the check fail, "down" by
an exception that the example names, "slow" makes it take a second; every other password goes to the example's own.
"""

import asyncio

import accounts

_verify = accounts.verify_password


async def verify_password(account: accounts.Account | None, password: str) -> bool:
    if password == "crash":
        raise RuntimeError("the password does not match the supplied hash")
    if password == "down":
        raise accounts.DatabaseDown
    if password == "slow":
        await asyncio.sleep(1)
    return await _verify(account, password)


accounts.verify_password = verify_password

from app import app  # noqa: E402, F401  # looks the function up in the module, but only once it is replaced
