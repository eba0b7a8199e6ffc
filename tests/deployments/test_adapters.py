"""What counts every request by its address does so for clients that reset, and does without where there is none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from expecting import assert_admitted, assert_resets_are_counted, each_program
from programs import ASGI, UNBOUNDED, WSGI, Budget, Files, Login, Policy, Program, settings
from service import CROWD, FORGED, Service

HERE = Path(__file__).parent / "adapters"
FIVE = Budget(5, 3600 / 5)
OPEN = Login("/open", welcome=204, wrong=204)
OF_ADDRESSES = Policy(FIVE, FIVE, UNBOUNDED)


def files(*names: str) -> Callable[[], Files]:
    return lambda: {name: (HERE / name).read_text(encoding="utf-8") for name in names}


def adapter(name: str, server: str, place: str, texts: Callable[[], Files], **env: str) -> Program:
    return Program(f"adapter-{name}", server, place, texts, OPEN, OF_ADDRESSES, env)


OF_DJANGO = files("settings.py", "urls.py", "serve_wsgiref.py")
SETTINGS = settings("settings")
ON_PORTS = [adapter("django-wsgiref", "wsgiref", "serve_wsgiref.py", OF_DJANGO, **SETTINGS)]
ANYWHERE = [
    adapter("starlette", "uvicorn", "starlette_app:app", files("starlette_app.py")),
    adapter("express", "node", "express.mjs", files("express.mjs")),
    adapter("fastify", "node", "fastify.mjs", files("fastify.mjs")),
    adapter("nest-express", "node", "nest.mjs", files("nest.mjs"), PLATFORM="express"),
    adapter("nest-fastify", "node", "nest.mjs", files("nest.mjs"), PLATFORM="fastify"),
    adapter("django-gunicorn", "gunicorn", WSGI, OF_DJANGO, **SETTINGS),
    adapter("django-uvicorn", "uvicorn-django", ASGI, OF_DJANGO, **SETTINGS),
]
at_ports = each_program("tcp", of=[*ANYWHERE, *ON_PORTS])
on_sockets = each_program("unix", of=ANYWHERE)
behind_nginx = each_program("nginx-tcp", "nginx-unix", of=ANYWHERE)


@at_ports
def test_of_100_requests_of_one_address_those_are_handled_that_its_rule_admits(service: Service) -> None:
    statuses, handled, seconds = service.guess(service.fresh_accounts(100), service.fresh_source())
    assert_admitted(handled, 100, FIVE, seconds)
    assert statuses == {204: len(handled), 429: 100 - len(handled)}


@at_ports
def test_requests_whose_connections_are_reset_count_for_their_address(service: Service) -> None:
    assert_resets_are_counted(service)


@at_ports
def test_a_request_whose_address_is_lost_is_not_handled(service: Service) -> None:
    # Nobody looks at a connection before it is reset.
    with service.running.standing_still():
        service.reset(service.fresh_accounts(200), service.fresh_source())
    handled = service.checked_at_last()
    if service.program.loses_addresses:
        assert len(handled) == 0, f"{len(handled)} requests handled"
    else:
        assert_admitted(handled, 200, FIVE, 10)


@on_sockets
def test_requests_without_an_address_are_handled_and_a_line_says_so(service: Service) -> None:
    _, handled, _ = service.guess(service.fresh_accounts(20), "")
    assert len(handled) == 20
    assert re.search("no address|without an address", service.running.log(), re.I)


@behind_nginx
def test_clients_of_nginx_are_counted_whatever_they_write(service: Service) -> None:
    for lines in ((), FORGED):
        _, handled, seconds = service.guess(service.fresh_accounts(50), service.fresh_source(), lines=lines)
        assert_admitted(handled, 50, FIVE, seconds)


@behind_nginx
def test_clients_of_nginx_gain_nothing_by_so_many_header_lines_that_its_own_is_dropped(service: Service) -> None:
    _, handled, seconds = service.guess(service.fresh_accounts(50), service.fresh_source(), lines=CROWD)
    assert len(handled) <= FIVE.bounds(50, seconds)[1]


@behind_nginx
def test_requests_to_nginx_whose_connections_are_reset_count_for_their_client(service: Service) -> None:
    assert_resets_are_counted(service)
