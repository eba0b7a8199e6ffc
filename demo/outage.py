"""The attack that goes on while Redis hangs, dies and comes back empty, and what it must come to in each mode.

The results are the services' own counts, apart for what they let in while they could not ask Redis. Invariant: the
guesses never pause, so nothing that a service lets in at the moment of a change is missed.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence

from attacks import LOCKOUT_WAIT, OWNER, THRESHOLD, answered
from guesses import Answer, Guess, count, keep_sending
from report import Row, tally
from server import Server

MODES = ("local", "open", "closed")

CONNECTIONS = 10
PAUSE_SECONDS = 0.02
WELL_SECONDS = 1
HANG_SECONDS = 1
GONE_SECONDS = 2
# Services look for Redis about once a second.
FIND_SECONDS = 3
LOOK_SECONDS = 0.1
# An answer takes at most the timeout of a store, 200 ms when nobody says otherwise, and the time of a hash. The rest is
# for a busy machine.
LONGEST_SECONDS = 0.5


async def attack(ports: Sequence[int], server: Server, mode: str) -> AsyncGenerator[Row, None]:
    """Guess at one account from one address at every service, while the server that they share comes and goes."""
    steady = _Steady(ports)
    try:
        await asyncio.sleep(WELL_SECONDS)
        well = await count(ports)
        hung = time.monotonic()
        server.hang()
        got = well["wrong"]
        found = tally(got, steady.answers) + answered(Counter(), well)
        yield steady.row("Redis answers", got, (THRESHOLD, THRESHOLD), steady.between(0, hung), found)

        await asyncio.sleep(HANG_SECONDS)
        await server.kill()
        await asyncio.sleep(GONE_SECONDS)
        started = time.monotonic()
        await server.start()
        again = await _found_again(ports)
        alone = steady.between(hung, again)
        got = (await count(ports))["alone"]
        expected = {
            # Each service has one budget of its own.
            "local": (THRESHOLD * len(ports), THRESHOLD * len(ports)),
            # Whoever asked while there was no server was let in.
            "open": (
                sum(answer.came < started and hung < answer.came - answer.seconds for answer in alone),
                len(alone),
            ),
            "closed": (0, 0),
        }
        name = f"  it hangs for {HANG_SECONDS} s, then is gone for {GONE_SECONDS} s"
        yield steady.row(name, got, expected[mode], alone, unavailable=mode == "closed")

        await asyncio.sleep(WELL_SECONDS)
        await steady.end()
        end = await count(ports)
        # The first guesses after the outage may have come before both services had found the server, so what came of
        # them is compared from its beginning.
        found = tally(end["wrong"] - well["wrong"], steady.between(hung, math.inf))
        if again - started > FIND_SECONDS:
            found.append(f"the services took more than {FIND_SECONDS} s to find it")
        name = f"  it is back, empty, found after {again - started:.1f} s"
        got = end["wrong"] - well["wrong"] - end["alone"]
        yield steady.row(name, got, (THRESHOLD, THRESHOLD), steady.between(again, math.inf), found)
    finally:
        await steady.drop()


class _Steady:
    """Guesses that go on until they are ended, and the answers to them."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.answers: list[Answer] = []
        self._going = True
        self._began = time.monotonic()
        self._sending = asyncio.ensure_future(
            keep_sending(ports, self._guesses(), self.answers, CONNECTIONS, PAUSE_SECONDS)
        )

    def between(self, start: float, end: float) -> list[Answer]:
        return [answer for answer in self.answers if start <= answer.came < end]

    def row(
        self,
        name: str,
        got: int,
        expected: tuple[int, int],
        answers: list[Answer],
        found: Sequence[str] = (),
        unavailable: bool = False,
    ) -> Row:
        """Make a row of what came in a part of the attack."""
        elapsed = time.monotonic() - self._began
        waits = (1, 1) if unavailable else (math.ceil(LOCKOUT_WAIT - elapsed), LOCKOUT_WAIT)
        statuses, denial = ((401, 429, 503), 503) if unavailable else ((401, 429), 429)
        return Row(name, got, "verified", expected, answers, waits, list(found), statuses, denial, LONGEST_SECONDS)

    async def end(self) -> None:
        """Let the last guesses be answered; a fault of the attacker itself is raised here."""
        self._going = False
        await self._sending

    async def drop(self) -> None:
        """Let go of guesses that are still on their way, and of what may have gone wrong with them."""
        self._sending.cancel()
        await asyncio.wait([self._sending])

    def _guesses(self) -> Iterator[Guess]:
        while self._going:
            yield Guess("203.0.113.7", OWNER.email, "123456")


async def _found_again(ports: Sequence[int]) -> float:
    """Wait until the services ask the server again, and give the moment from which they did."""
    since, before, unchanged = time.monotonic(), await count(ports), 0
    # A fault that lasts is said by the numbers that follow.
    deadline = since + 2 * FIND_SECONDS
    while unchanged < 3 and time.monotonic() < deadline:
        await asyncio.sleep(LOOK_SECONDS)
        now = await count(ports)
        if now["unanswered"] == before["unanswered"]:
            unchanged += 1
        else:
            since, before, unchanged = time.monotonic(), now, 0
    return since
