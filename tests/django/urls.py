"""Views that log in, in all ways, and views that are guarded."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import sync_to_async
from django import VERSION
from django.contrib import admin, auth
from django.contrib.admin.models import LogEntry
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View
from rest_framework.authentication import BasicAuthentication
from rest_framework.decorators import api_view, authentication_classes, permission_classes, throttle_classes
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from doorkeep import StrikeRule, presets
from doorkeep.django import guarded, request_keys
from doorkeep.drf import DoorkeepThrottle

STRICT = StrikeRule("otp-strict", threshold=3, lockout_window="1h", by=("account",))
ran: list[str] = []
codes: list[str] = []


def credentials(request: HttpRequest) -> dict[str, Any]:
    return dict(json.loads(request.body))


def login(request: HttpRequest) -> HttpResponse:
    user = auth.authenticate(request, **credentials(request))
    if user is None:
        return JsonResponse({"error": "wrong"}, status=401)
    auth.login(request, user)
    return JsonResponse({"ok": True})


def form(request: HttpRequest) -> HttpResponse:
    """Shows a wrong password as Django's own view does, without its token."""
    given = AuthenticationForm(request, data=request.POST)
    if given.is_valid():
        auth.login(request, given.get_user())
        return HttpResponseRedirect("/who")
    return HttpResponse(given.as_p())


def check(request: HttpRequest) -> HttpResponse:
    """Authenticates without logging in, as an API does."""
    user = auth.authenticate(request, **credentials(request))
    return JsonResponse({"ok": user is not None}, status=200 if user is not None else 401)


@transaction.non_atomic_requests
async def alogin(request: HttpRequest) -> HttpResponse:
    authenticate = auth.aauthenticate if VERSION >= (5, 0) else sync_to_async(auth.authenticate)
    user = await authenticate(request, **credentials(request))
    if user is None:
        return JsonResponse({"error": "wrong"}, status=401)
    await (auth.alogin if VERSION >= (5, 0) else sync_to_async(auth.login))(request, user)
    return JsonResponse({"ok": True})


def login_and_crash(request: HttpRequest) -> HttpResponse:
    auth.authenticate(request, **credentials(request))
    raise ZeroDivisionError


def login_caught(request: HttpRequest) -> HttpResponse:
    """Answers the exception of a backend, as an application does whose hasher raises on a mismatch."""
    try:
        auth.authenticate(request, **credentials(request))
    except ZeroDivisionError:
        return HttpResponse(status=401)
    return HttpResponse(status=401)


@transaction.non_atomic_requests
async def busy(request: HttpRequest) -> HttpResponse:
    """Blocks the event loop, like a view that computes a hash."""
    ran.append("busy")
    time.sleep(0.5)
    return HttpResponse()


def login_twice(request: HttpRequest) -> HttpResponse:
    for _ in range(2):
        auth.authenticate(request, **credentials(request))
    return HttpResponse()


def login_at_once(request: HttpRequest) -> HttpResponse:
    """Guesses in its own threads, as the fields of one query do."""
    given = credentials(request)

    def guess(password: str) -> None:
        auth.authenticate(request, username=given["username"], password=password)
        connection.close()

    with ThreadPoolExecutor(len(given["passwords"])) as threads:
        list(threads.map(guess, given["passwords"]))
    return HttpResponse()


def who(request: HttpRequest) -> HttpResponse:
    name = request.user.get_username()
    return JsonResponse({"user": name, "backend": request.session.get("_auth_user_backend")})


def otp_keys(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
    rule = STRICT if "strict" in request.POST else presets.otp_verify
    return request_keys(request, rule, account=request.POST.get("account"))


async def otp_keys_async(request: HttpRequest) -> Any:
    return otp_keys(request)


def outcome(request: HttpRequest) -> HttpResponse:
    ran.append(request.path)
    match request.POST.get("do"):
        case "crash" | "wrong, then crash":
            raise ZeroDivisionError
        case "missing":
            raise Http404
        case "error":
            return HttpResponse(status=500)
    return HttpResponse("done")


@guarded(keys=otp_keys)
def verify(request: HttpRequest) -> HttpResponse:
    if request.POST.get("do") == "right":
        request.attempt.success(forgive=["otp-verify"])  # type: ignore[attr-defined]
    if request.POST.get("do") == "wrong, then crash":
        request.attempt.failure()  # type: ignore[attr-defined]
    return outcome(request)


@guarded(keys=otp_keys)
def code(request: HttpRequest) -> HttpResponse:
    """Checks a code, then writes a row, a part of which the client chooses."""
    codes.append(request.POST["code"])
    kind = ContentType.objects.get_for_model(LogEntry)
    ann = auth.get_user_model().objects.get(username="ann")
    LogEntry.objects.create(user=ann, content_type=kind, action_flag=int(request.POST["flag"]))
    return HttpResponse(status=403)


@transaction.non_atomic_requests
@guarded(keys=otp_keys_async)
async def averify(request: HttpRequest) -> HttpResponse:
    if request.POST.get("do") == "right":
        await request.attempt.success(forgive=["otp-verify"])  # type: ignore[attr-defined]
    if request.POST.get("do") == "wrong, then crash":
        await request.attempt.failure()  # type: ignore[attr-defined]
    return outcome(request)


@method_decorator(guarded(keys=otp_keys), name="dispatch")
class Verify(View):
    def post(self, request: HttpRequest) -> HttpResponse:
        return outcome(request)


@method_decorator(guarded(keys=otp_keys), name="dispatch")
class AsyncVerify(View):
    async def post(self, request: HttpRequest) -> HttpResponse:
        return outcome(request)


class Basic(APIView):
    authentication_classes = (BasicAuthentication,)
    permission_classes = (IsAuthenticated,)

    def get(self, request: Any) -> Response:
        return Response({"user": request.user.get_username()})


class Throttled(APIView):
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = (DoorkeepThrottle,)
    throttle_scope = "otp"

    def get_throttle_values(self, request: Any) -> dict[str, Any]:
        return {"account": request.data.get("account")}

    def post(self, request: Any) -> Response:
        ran.append(request.path)
        if request.data.get("do") == "crash":
            raise ZeroDivisionError
        return Response({"ok": True})


class Scopeless(Throttled):
    throttle_scope = None  # type: ignore[assignment]


class OtpThrottle(DoorkeepThrottle):
    """The throttle of a function, which has no attributes itself."""

    scope = "otp"

    def values(self, request: Any, view: Any) -> dict[str, Any]:
        return {"account": request.data.get("account")}


@api_view(["POST"])
@authentication_classes([])
@permission_classes([])
@throttle_classes([DoorkeepThrottle])
def function(request: Any) -> Response:
    ran.append(request.path)
    return Response({"ok": True})


@api_view(["POST"])
@authentication_classes([])
@permission_classes([])
@throttle_classes([OtpThrottle])
def function_of_scope(request: Any) -> Response:
    ran.append(request.path)
    return Response({"ok": True})


class Listed(Scopeless):
    """Returns its throttles from a method."""

    throttle_classes = APIView.throttle_classes

    def get_throttles(self) -> list[Any]:
        return [DoorkeepThrottle()]


def open_to_all(view: Any) -> Any:
    # An attacker would have a token of the form; here it is not needed.
    view.csrf_exempt = True
    return view


urlpatterns = [
    path("admin/", admin.site.urls),
    path("form/", open_to_all(form)),
    path("api/login", open_to_all(login)),
    path("api/check", open_to_all(check)),
    path("api/alogin", open_to_all(alogin)),
    path("api/crash", open_to_all(login_and_crash)),
    path("api/caught", open_to_all(login_caught)),
    path("api/twice", open_to_all(login_twice)),
    path("api/at-once", open_to_all(login_at_once)),
    path("api/basic", Basic.as_view()),
    path("api/throttled", Throttled.as_view()),
    path("api/function", function),
    path("api/function-of-scope", function_of_scope),
    path("api/scopeless", Scopeless.as_view()),
    path("api/listed", Listed.as_view()),
    path("busy", busy),
    path("who", who),
    path("open/", open_to_all(outcome)),
    path("verify", open_to_all(verify)),
    path("code", open_to_all(code)),
    path("averify", open_to_all(averify)),
    path("class", open_to_all(Verify.as_view())),
    path("aclass", open_to_all(transaction.non_atomic_requests(AsyncVerify.as_view()))),
]
