"""What the service of Django answers."""

import json

import instrument
from django.http import HttpRequest, HttpResponse
from django.urls import path


def reach(request: HttpRequest) -> HttpResponse:
    instrument.write_down(json.loads(request.body)["password"])
    return HttpResponse(status=204)


urlpatterns = [path("open", reach)]
