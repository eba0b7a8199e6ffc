"""A proxy between a store and its server that fails like a network.

Knows no protocol. Invariant: a fault applies to existing and new connections until the next one is set; data that a
stall held back is then sent, late.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

FAULTS = {
    "pass": "hand on everything",
    "stall": "take everything and hand on nothing",
    "rst": "end every connection at once, by a reset",
    "drop_down": "lose what goes to the client",
    "drop_up": "lose what goes to the server",
}
_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Listens on a free loopback port and forwards to a server."""

    def __init__(self, port: int) -> None:
        self.server = port
        self.accepted = 0
        self._fault = "pass"
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._spawn(self._accept)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def set(self, fault: str) -> None:
        """Apply this fault to connections from now on."""
        assert fault in FAULTS
        with self._changed:
            self._fault = fault
            self._changed.notify_all()
        if fault == "rst":
            for side in list(self._open):
                self._reset(side)

    def close(self) -> None:
        self.set("rst")
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.accepted += 1
                if self._fault == "rst":
                    self._reset(client)
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self.server))
                except OSError:
                    client.close()
                    continue
                for side in (client, server):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._open.add(side)
                self._spawn(self._lead, client, server)

    def _lead(self, client: socket.socket, server: socket.socket) -> None:
        back = self._spawn(self._pump, server, client, "drop_down")
        self._pump(client, server, "drop_up")
        back.join()
        client.close()
        server.close()

    def _pump(self, source: socket.socket, target: socket.socket, losing: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                with self._changed:
                    self._changed.wait_for(lambda: self._fault != "stall")
                    fault = self._fault
                if fault != losing:
                    target.sendall(data)
        for side in (source, target):
            self._open.discard(side)
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def _reset(self, side: socket.socket) -> None:
        self._open.discard(side)
        with contextlib.suppress(OSError):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            side.shutdown(socket.SHUT_RDWR)
            side.close()

    def _spawn(self, run: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        thread.start()
        return thread
