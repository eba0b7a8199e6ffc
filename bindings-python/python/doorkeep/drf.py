"""A throttle for Django REST framework that decides all keys of a request in one call.

::

    DOORKEEP = {"rules": [...], "throttles": {"otp": ["otp_ip", "otp_verify"]}}

    class VerifyView(APIView):
        throttle_classes = [DoorkeepThrottle]
        throttle_scope = "otp"

        def get_throttle_values(self, request):
            return {"account": request.user.get_username()}

Other throttles of the framework are asked one after the other, so that what one denies the ones before have counted
already. Does no arithmetic and reads no clock.
"""

from __future__ import annotations

from typing import Any

from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from doorkeep import InvalidKeyError, http
from doorkeep.django import conf
from doorkeep.django.attempts import record_of, reserve
from doorkeep.django.requests import inner, request_keys
from doorkeep.django.signals import tell_lockout

__all__ = ["DoorkeepThrottle", "Unavailable"]


class Unavailable(APIException):
    """The limiter is closed and its store does not answer: 503."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "Temporarily unavailable"
    default_code = "unavailable"

    def __init__(self, wait: int | None = None) -> None:
        super().__init__()
        # The framework makes Retry-After of it.
        self.wait = wait


class DoorkeepThrottle(BaseThrottle):
    """Counts each request of a view under the rules of its ``throttle_scope``; one attempt, all or nothing.

    A view without a scope is not limited. Rules keyed by more than the address take their values from the view's
    ``get_throttle_values(request)``; by default ``account`` is the user that is logged in. Keys that are none are
    answered with 400.
    """

    def __init__(self) -> None:
        self._wait: int | None = None

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the request, or say no.

        Raises
        ------
        ParseError
            A key is empty, or is not text.
        Unavailable
            The limiter is closed and its store does not answer.
        ConfigError
            The setting has no such scope.
        """
        scope = getattr(view, "throttle_scope", None)
        if scope is None:
            return True
        configuration = conf.current()
        rules = configuration.throttle(scope)
        try:
            keys = request_keys(inner(request), *rules, **self.values(request, view))
        except InvalidKeyError as error:
            raise ParseError from error
        counted = reserve(inner(request), configuration.limiter, keys)
        if counted is not None:
            tell_lockout(inner(request), counted.decision)
            return True
        decision, keys = record_of(inner(request)).take_denial()
        seconds = http.headers(decision, keys, round_up=configuration.round_up).get("Retry-After")
        self._wait = None if seconds is None else int(seconds)
        if http.status(decision) == status.HTTP_503_SERVICE_UNAVAILABLE:
            raise Unavailable(self._wait)
        return False

    def values(self, request: Request, view: APIView) -> dict[str, Any]:
        """Give the values for the words that rules are keyed by, besides the address."""
        given = getattr(view, "get_throttle_values", None)
        if given is not None:
            return dict(given(request))
        user = request.user
        return {"account": user.get_username()} if user is not None and user.is_authenticated else {}

    def wait(self) -> float | None:
        """Give the seconds that a denied client should wait; None when waiting does not help."""
        return self._wait
