"""nginx in front of a program, as its documentation sets it up, on a free loopback port and in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from clients import Entrance
from running import ends, free_port

CONFIGURATION = """\
daemon off;
{user}
worker_processes 1;
pid nginx.pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path temporary;
  proxy_temp_path temporary;
  fastcgi_temp_path temporary;
  scgi_temp_path temporary;
  uwsgi_temp_path temporary;
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{
      proxy_pass http://{upstream};
      proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
  }}
}}
"""


def binary() -> str:
    found = os.environ.get("DOORKEEP_NGINX") or shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    assert found, "no nginx: DOORKEEP_NGINX names none, and none is on the path; tests/support/nginx.sh installs it"
    return found


@contextlib.contextmanager
def nginx(upstream: Entrance, folder: Path) -> Iterator[Entrance]:
    """Run nginx in front of a server, and give its own entrance."""
    (folder / "temporary").mkdir(parents=True)
    entrance = Entrance(free_port())
    place = f"unix:{upstream.path}" if upstream.path else f"127.0.0.1:{upstream.port}"
    # Its workers must reach the socket of a program that the same user runs.
    user = "user root;" if os.getuid() == 0 else ""
    text = CONFIGURATION.format(user=user, port=entrance.port, upstream=place)
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    log = folder / "error.log"
    command = [binary(), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not entrance.answers():
            assert process.poll() is None, f"nginx ended:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"nginx did not come up:\n{log.read_text()}"
            time.sleep(0.01)
        yield entrance
    finally:
        ends(process)
