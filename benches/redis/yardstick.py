r"""The yardstick: `redis-benchmark` running the script that the limiters run, with the arguments that they send.

What they send is read off the wire with MONITOR, so it cannot drift from the code. redis-benchmark takes no NUL in an
argument, and the policies are packed doubles: in their place go texts of the same length, and two lines before the
script put the true ones back, as constants. The bytes on the wire and the work on the server stay the same.
"""

import re
import subprocess
from pathlib import Path

from server import Server

SCRIPT = Path(__file__).parents[2] / "core/src/redis/store/decide.lua"
ESCAPES = {"n": 10, "r": 13, "t": 9, "a": 7, "b": 8, '"': 34, "\\": 92}
DIGEST = re.compile(r"[0-9a-f]{32}")
RANDOM_KEY = "0" * 20 + "__rand_int__"


class Yardstick:
    """One command for redis-benchmark, over random keys."""

    def __init__(self, server: Server, monitored: str, keys: int) -> None:
        _, _, count, *words = map(unescaped, re.findall(r'"((?:[^"\\]|\\.)*)"', monitored))
        names, arguments = words[: int(count)], words[int(count) :]
        binary = {place: word for place, word in enumerate(arguments, 1) if not word.isascii() or b"\0" in word}
        constants = "".join(f"ARGV[{place}] = {literal(word)}\n" for place, word in binary.items())
        sha = server.ask("SCRIPT", "LOAD", constants + SCRIPT.read_text(encoding="utf-8"))
        shown = [DIGEST.sub(RANDOM_KEY, name.decode()) for name in names]
        sent = ["x" * len(word) if place in binary else word.decode() for place, word in enumerate(arguments, 1)]
        self.options = ["redis-benchmark", "-p", str(server.port), "-q", "-r", str(keys)]
        self.command = ["EVALSHA", sha, count.decode(), *shown, *sent]

    def rate(self, *load: str) -> float:
        """Give the commands a second under a load such as `-c 50 -P 16 -n 1000`."""
        done = subprocess.run([*self.options, *load, *self.command], capture_output=True, check=True, text=True)
        return float(re.findall(r"([\d.]+) requests per second", done.stdout)[-1])


def unescaped(shown: str) -> bytes:
    """Read a word as MONITOR shows it."""
    found = re.findall(r"\\x([0-9a-f]{2})|\\(.)|(.)", shown)
    return bytes(
        int(hexadecimal, 16) if hexadecimal else ESCAPES[escape] if escape else ord(plain)
        for hexadecimal, escape, plain in found
    )


def literal(word: bytes) -> str:
    """Give a Lua string; Lua 5.1 knows decimal escapes alone."""
    return "'" + "".join(f"\\{byte:03d}" for byte in word) + "'"
