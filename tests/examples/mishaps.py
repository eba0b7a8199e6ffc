"""The FastAPI login with an account database that has good days and bad ones: by the password that is sent.

Run as ``uvicorn mishaps:app`` with this folder and the example's on the path. "crash" breaks the look-up, "slow" makes
it take a second; every other password goes to the example's own.
"""

import asyncio

import accounts

_verify = accounts.verify_password


async def verify_password(email: str, password: str) -> bool:
    if password == "crash":
        raise RuntimeError("the database is gone")
    if password == "slow":
        await asyncio.sleep(1)
    return await _verify(email, password)


accounts.verify_password = verify_password

from app import app  # noqa: E402, F401  # looks the function up in the module, but only once it is replaced
