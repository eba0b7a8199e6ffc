"""A service of Starlette that counts every request by its address."""

import instrument
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from doorkeep import ClientIp, Limiter, Rule
from doorkeep.starlette import AddressLimit

client_ip = ClientIp()


async def reach(request: Request) -> Response:
    instrument.write_down((await request.json())["password"])
    return Response(status_code=204)


app = Starlette(routes=[Route("/open", reach, methods=["POST"])])
app.add_middleware(
    AddressLimit, limiter=Limiter(), rules=[Rule("open-ip", "5/1h", by=("address",))], client_ip=client_ip
)
