"""A guard for views: each request is an attempt, counted before the view runs.

::

    @guarded(keys=lambda request: request_keys(request, "otp_verify", account=request.user.get_username()))
    def verify(request):
        if not is_right(request.POST.get("code")):
            request.attempt.failure()
            return render(request, "verify.html", status=403)
        request.attempt.success(forgive=["otp-verify"])
        return redirect("home")

The attempt stays counted unless the view settles it, whatever it returns or raises. List the classes of failures that
should not cost an attempt in ``give_back_on``. For classes: ``@method_decorator(guarded(...), name="dispatch")``. Does
no arithmetic and reads no clock.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse

from doorkeep import ConfigError, InvalidKeyError, Limiter
from doorkeep.django import conf
from doorkeep.django.answers import refusal, with_fields
from doorkeep.django.attempts import AsyncAttempt, Counted, reserve, run, state_of
from doorkeep.django.requests import inner, request_keys
from doorkeep.django.signals import areport_lockout, report_lockout

__all__ = ["guarded"]

_View = TypeVar("_View", bound=Callable[..., Any])


def guarded(
    keys: Callable[..., Any] | Iterable[str],
    *,
    limiter: Limiter | None = None,
    cost: int = 1,
    give_back_on: type[Exception] | Iterable[type[Exception]] = (),
    **options: Any,
) -> Callable[[_View], _View]:
    """Return a decorator that counts each request as an attempt, on ``request.attempt``.

    A second guard of the same limiter in a request, including the middleware and the authentication backend, counts
    only the keys that are new.

    Parameters
    ----------
    keys
        A function that takes the arguments of the view and returns the keys to count; for an async view it may be
        async. Or names of rules of the setting that are keyed by the address. Do not look up the account in it.
    limiter
        Defaults to the setting's, also for async views, whose attempt is awaited.
    cost
        How much the request spends of each rate.
    give_back_on
        Exception classes that give the attempt back when they leave the view, besides those of the setting: failures
        that are unrelated to the guess. What was counted on an address alone stays counted.
    options
        ``round_up`` and ``rate_limit``, as in the setting.

    Returns
    -------
    Callable
        A decorator for sync and async views. If the attempt is denied, the answer is 429 or 503 and the view is not
        called; invalid keys are answered with 400.
    """
    if unknown := set(options) - {"round_up", "rate_limit"}:
        raise ConfigError(f"unknown option of a guard, name=`{min(unknown)}`")
    guard = _Guard(keys, limiter, cost, conf.classes(give_back_on), options)

    def decorate(view: _View) -> _View:
        @wraps(view)
        def guarded_view(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            # The dispatch of a class with async handlers is a plain function that returns an awaitable.
            owner = getattr(getattr(view, "func", None), "__self__", None)
            if getattr(owner, "view_is_async", False):
                return guard.answer_async(view, request, args, kwargs)
            return guard.answer(view, request, args, kwargs)

        @wraps(view)
        async def guarded_async_view(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            return await guard.answer_async(view, request, args, kwargs)

        return guarded_async_view if iscoroutinefunction(view) else guarded_view  # type: ignore[return-value]

    return decorate


class _Guard:
    def __init__(
        self,
        keys: Callable[..., Any] | Iterable[str],
        limiter: Limiter | None,
        cost: int,
        give_back_on: tuple[type[Exception], ...],
        options: dict[str, Any],
    ) -> None:
        self._keys = keys if callable(keys) else tuple(keys)
        self._limiter = limiter
        self._cost = cost
        self._give_back_on = give_back_on
        self._options = options

    def answer(self, view: Any, request: HttpRequest, args: Any, kwargs: Any) -> Any:
        limiter = self._limiter or conf.current().limiter
        try:
            counted = reserve(request, limiter, self._named(request, args, kwargs), cost=self._cost)
        except InvalidKeyError as error:
            return refusal(request, error)
        if counted is None:
            return self._refusal(request)
        report_lockout(request, counted.decision)
        request.attempt = counted.attempt  # type: ignore[attr-defined]
        try:
            response = view(request, *args, **kwargs)
        except Exception as error:
            counted.give_back(error, self._give_back_on)
            raise
        return self._with_fields(response, counted)

    async def answer_async(self, view: Any, request: HttpRequest, args: Any, kwargs: Any) -> Any:
        limiter = self._limiter or conf.current().limiter
        try:
            named = self._named(request, args, kwargs)
            keys = await named if inspect.isawaitable(named) else named
            counted = await run(limiter, reserve, request, limiter, keys, cost=self._cost)
        except InvalidKeyError as error:
            return refusal(request, error)
        if counted is None:
            return self._refusal(request)
        await areport_lockout(request, counted.decision)
        request.attempt = AsyncAttempt(limiter, counted.attempt)  # type: ignore[attr-defined]
        try:
            response = await view(request, *args, **kwargs)
        except Exception as error:
            await run(limiter, counted.give_back, error, self._give_back_on)
            raise
        return self._with_fields(response, counted)

    def _named(self, request: HttpRequest, args: Any, kwargs: Any) -> Any:
        return self._keys(request, *args, **kwargs) if callable(self._keys) else request_keys(request, *self._keys)

    def _refusal(self, request: HttpRequest) -> HttpResponse:
        return refusal(inner(request), state_of(request).take_denial(), **self._options)

    def _with_fields(self, response: Any, counted: Counted) -> Any:
        if isinstance(response, HttpResponse):
            with_fields(response, counted.decision, counted.keys, **self._options)
        return response
