"""A throttle for Django REST framework that decides all keys of a request in one call.

::

    DOORKEEP = {"rules": [...], "throttles": {"otp": ["otp_ip", "otp_verify"]}}

    class VerifyView(APIView):
        throttle_classes = [DoorkeepThrottle]
        throttle_scope = "otp"

        def get_throttle_values(self, request):
            return {"account": request.user.get_username()}

For a function, put the attributes on the throttle::

    class OtpThrottle(DoorkeepThrottle):
        scope = "otp"

        def values(self, request, view):
            return {"account": request.user.get_username()}

    @api_view(["POST"])
    @throttle_classes([OtpThrottle])
    def verify(request): ...

The framework asks its own throttles one after the other: a request that one denies is already counted by the throttles
before it. Does no arithmetic and reads no clock.
"""

from __future__ import annotations

from typing import Any

from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from doorkeep import ConfigError, InvalidKeyError, http
from doorkeep.django import conf
from doorkeep.django.attempts import reserve, state_of
from doorkeep.django.requests import inner, request_keys
from doorkeep.django.signals import report_lockout

__all__ = ["DoorkeepThrottle", "Unavailable"]


class Unavailable(APIException):
    """The limiter is closed and its store does not answer: 503."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "Temporarily unavailable"
    default_code = "unavailable"

    def __init__(self, wait: int | None = None) -> None:
        super().__init__()
        # The framework sends it as Retry-After.
        self.wait = wait


class DoorkeepThrottle(BaseThrottle):
    """Counts each request of a view under the rules of its ``throttle_scope``, as one attempt: all rules or none.

    A subclass may have its own ``scope``, which takes precedence over the view's. As one of
    ``DEFAULT_THROTTLE_CLASSES`` it ignores views without a scope; a view that names it and has no scope is a
    `ConfigError`. Rules keyed by more than the address take their values from the view's
    ``get_throttle_values(request)``; by default ``account`` is the user that is logged in. Invalid keys are answered
    with 400.
    """

    scope: str | None = None

    def __init__(self) -> None:
        self._wait: int | None = None

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the request, and return whether it is allowed.

        Raises
        ------
        ParseError
            A key is empty or not a string.
        Unavailable
            The limiter is closed and its store does not answer.
        ConfigError
            The setting has no such scope, or the view names this throttle and has no scope.
        """
        scope = self._scope(view)
        if scope is None:
            return True
        configuration = conf.current()
        rules = configuration.throttle(scope)
        try:
            keys = request_keys(inner(request), *rules, **self.values(request, view))
        except InvalidKeyError as error:
            _keep_from_caches(view)
            raise ParseError from error
        counted = reserve(inner(request), configuration.limiter, keys)
        if counted is not None:
            report_lockout(inner(request), counted.decision)
            return True
        _keep_from_caches(view)
        decision, keys = state_of(inner(request)).take_denial()
        seconds = http.headers(decision, keys, round_up=configuration.round_up).get("Retry-After")
        self._wait = None if seconds is None else int(seconds)
        if http.status(decision) == status.HTTP_503_SERVICE_UNAVAILABLE:
            raise Unavailable(self._wait)
        return False

    def values(self, request: Request, view: APIView) -> dict[str, Any]:
        """Return the values for the words that rules are keyed by, besides the address."""
        given = getattr(view, "get_throttle_values", None)
        if given is not None:
            return dict(given(request))
        user = request.user
        return {"account": user.get_username()} if user is not None and user.is_authenticated else {}

    def wait(self) -> float | None:
        """Return the seconds that a denied client should wait; None if waiting does not help."""
        return self._wait

    def _scope(self, view: APIView) -> str | None:
        scope: str | None = self.scope if self.scope is not None else getattr(view, "throttle_scope", None)
        if scope is not None:
            return scope
        everywhere = APIView.throttle_classes
        # A throttle that a view names but that counts nothing would silently admit everything.
        if view.throttle_classes is everywhere and type(self) in everywhere:
            return None
        name = type(self).__name__
        raise ConfigError(f"a view that names {name} must have a throttle_scope, or the throttle a scope")


def _keep_from_caches(view: APIView) -> None:
    # The framework adds the headers of the view to the answer that it makes of the exception.
    view.headers["Cache-Control"] = "no-store"
