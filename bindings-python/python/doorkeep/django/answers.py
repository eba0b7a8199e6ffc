"""The answers to denied requests.

A client that accepts HTML explicitly and prefers it, as browsers do, gets the template ``doorkeep/STATUS.html``, which
a project may override; all others get JSON. It is rendered without the request and is not cached. Invariant: the bytes
depend on the decision alone, so that they are the same for accounts that exist and accounts that do not.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string

from doorkeep import Decision, InvalidKeyError, Key, RateLimitExceeded, http
from doorkeep.django import conf

__all__ = ["refusal", "with_fields"]

_HTML = ("html", "xhtml+xml")
_TEXTS = {400: "Bad request", 429: "Too many attempts", 503: "Temporarily unavailable"}


Refused: TypeAlias = "tuple[Decision, list[Key]] | InvalidKeyError | RateLimitExceeded"


def refusal(request: HttpRequest, refused: Refused, **options: Any) -> HttpResponse:
    """Return the answer to a refused request: 429 or 503 with ``Retry-After``, 400 for invalid keys.

    ``options`` are those of `http.headers`; the setting has the defaults.
    """
    if isinstance(refused, InvalidKeyError):
        return _answer(request, 400, {})
    if isinstance(refused, RateLimitExceeded):
        return _answer(request, 429, refused.headers)
    decision, keys = refused
    return _answer(request, http.status(decision), _headers(decision, keys, options))


def with_fields(response: HttpResponse, decision: Decision, keys: list[Key], **options: Any) -> HttpResponse:
    """Add the ``RateLimit`` fields to a response, if the options ask for them."""
    for name, value in _headers(decision, keys, options).items():
        response.headers.setdefault(name, value)
    return response


def _headers(decision: Decision, keys: list[Key], options: dict[str, Any]) -> dict[str, str]:
    configuration = conf.current()
    defaults = {"round_up": configuration.round_up, "rate_limit": configuration.rate_limit}
    return http.headers(decision, keys, **{**defaults, **options})


def _answer(request: HttpRequest, status: int, headers: dict[str, str]) -> HttpResponse:
    text = _TEXTS[status]
    headers = {**headers, "Cache-Control": "no-store"}
    if not _prefers_html(request):
        return JsonResponse({"detail": text}, status=status, headers=headers)
    context = {"status": status, "text": text, "retry_after": headers.get("Retry-After")}
    try:
        body = render_to_string(f"doorkeep/{status}.html", context)
    except TemplateDoesNotExist:  # a project without templates
        return HttpResponse(text, status=status, headers=headers, content_type="text/plain")
    return HttpResponse(body, status=status, headers=headers)


def _prefers_html(request: HttpRequest) -> bool:
    # Programs that accept anything send `*/*`; a browser lists HTML.
    accepted = [(_quality(kind), kind.sub_type in _HTML) for kind in request.accepted_types if _is_known(kind.sub_type)]
    # Of two types with equal preference, the first.
    quality, is_html = max(accepted, key=lambda one: one[0], default=(0.0, False))
    return quality > 0 and is_html


def _is_known(sub_type: str) -> bool:
    return sub_type in _HTML or sub_type == "json" or sub_type.endswith("+json")


def _quality(kind: Any) -> float:
    try:
        return float(kind.params.get("q", 1))
    except ValueError:
        return 1.0
