"""Turns a denied log-in into 429, whatever the view returned, and counts addresses by path.

A log-in form shows a denied guess as a wrong password, with status 200, since Django reports nothing else to forms. So
the answer is replaced here, in the admin, in forms and in APIs. Natively sync and async. Invariant: what was counted
here stays counted, whatever the view does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse

from doorkeep import AttemptDenied, InvalidKeyError, RateLimitExceeded, Rule, StrikeRule
from doorkeep.django import conf
from doorkeep.django.answers import refusal, with_fields
from doorkeep.django.attempts import Counted, reserve, run, state_of
from doorkeep.django.requests import client_address, request_keys, warn_uncounted
from doorkeep.django.signals import areport_lockout, report_lockout

__all__ = ["DoorkeepMiddleware"]


class DoorkeepMiddleware:
    """Place it before the session's middleware: denied requests then cost no look-up."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        # On an event loop, Django would call a plain function in a thread for every request.
        self.process_view = self._count_view_async if self._is_async else self._count_view
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        """Answer a request, or return the awaitable of its answer."""
        if self._is_async:
            return self._answer(request)
        if (counted := self._count(request, _covering(request))) is not None:
            report_lockout(request, counted.decision)
        return self._finish(request, None if state_of(request).refused else self.get_response(request))

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        limiter = conf.current().limiter
        if (counted := await run(limiter, self._count, request, _covering(request))) is not None:
            await areport_lockout(request, counted.decision)
        response = None if state_of(request).refused else await self.get_response(request)
        if state_of(request).error is None:
            return self._finish(request, response)
        return await run(limiter, self._finish, request, response)

    def _count_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        rules = _naming(request)
        if rules and (counted := self._count(request, rules)) is not None:
            report_lockout(request, counted.decision)
        return self._refusal(request)

    async def _count_view_async(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        rules = _naming(request)
        if rules and (counted := await run(conf.current().limiter, self._count, request, rules)) is not None:
            await areport_lockout(request, counted.decision)
        return self._refusal(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Record that the view raised, and answer the errors of doorkeep."""
        if isinstance(error, InvalidKeyError | RateLimitExceeded):
            return refusal(request, error)
        if isinstance(error, AttemptDenied):
            return refusal(request, (error.decision, []))
        state_of(request).error = error
        return None

    def _count(self, request: HttpRequest, rules: list[Rule | StrikeRule]) -> Counted | None:
        if not rules:
            return None
        try:
            if client_address(request) is None:
                warn_uncounted("a request that is counted by its path")
                return None
            keys = request_keys(request, *rules)
        except InvalidKeyError as error:
            state_of(request).refused = error
            return None
        return reserve(request, conf.current().limiter, keys)

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        state = state_of(request)
        return None if state.refused is None else refusal(request, state.refused)

    def _finish(self, request: HttpRequest, response: HttpResponse | None) -> HttpResponse:
        state = state_of(request)
        if state.error is not None:
            state.give_back(state.error)
        if state.refused is not None:
            return refusal(request, state.refused)
        assert response is not None, "a request that was not refused was answered"
        for counted in state.counted.values():
            with_fields(response, counted.decision, counted.keys)
        return response


def _covering(request: HttpRequest) -> list[Rule | StrikeRule]:
    paths = [path for path in conf.current().paths if path.covers(request.method, request.path_info)]
    return list(dict.fromkeys(rule for path in paths for rule in path.rules))


def _naming(request: HttpRequest) -> list[Rule | StrikeRule]:
    match = request.resolver_match
    named = [path for path in conf.current().paths if match is not None and path.names(request.method, match.view_name)]
    return list(dict.fromkeys(rule for path in named for rule in path.rules))
