"""What a stranger gets to see of a denial.

JSON for a client that asks for it or sends it, else the template ``doorkeep/STATUS.html``, which a project may
override. It is rendered without the request. Invariant: the bytes depend on the decision alone, so that an account that
exists answers as one that does not.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string

from doorkeep import Decision, InvalidKeyError, Key, RateLimitExceeded, http
from doorkeep.django import conf

__all__ = ["refusal", "with_fields"]

_TEXTS = {400: "Bad request", 429: "Too many attempts", 503: "Temporarily unavailable"}


Refused: TypeAlias = "tuple[Decision, list[Key]] | InvalidKeyError | RateLimitExceeded"


def refusal(request: HttpRequest, refused: Refused, **options: Any) -> HttpResponse:
    """Answer what was refused: 429 or 503 with ``Retry-After``, 400 for keys that are none.

    ``options`` are `http.headers`'s; those of the setting where they are missing.
    """
    if isinstance(refused, InvalidKeyError):
        return _answer(request, 400, {})
    if isinstance(refused, RateLimitExceeded):
        return _answer(request, 429, {})
    decision, keys = refused
    return _answer(request, http.status(decision), _headers(decision, keys, options))


def with_fields(response: HttpResponse, decision: Decision, keys: list[Key], **options: Any) -> HttpResponse:
    """Put what an allowed answer tells of the limits on a response: nothing, unless asked for."""
    for name, value in _headers(decision, keys, options).items():
        response.headers.setdefault(name, value)
    return response


def _headers(decision: Decision, keys: list[Key], options: dict[str, Any]) -> dict[str, str]:
    configuration = conf.current()
    defaults = {"round_up": configuration.round_up, "rate_limit": configuration.rate_limit}
    return http.headers(decision, keys, **{**defaults, **options})


def _answer(request: HttpRequest, status: int, headers: dict[str, str]) -> HttpResponse:
    text = _TEXTS[status]
    if _wants_json(request):
        return JsonResponse({"detail": text}, status=status, headers=headers)
    context = {"status": status, "text": text, "retry_after": headers.get("Retry-After")}
    try:
        body = render_to_string(f"doorkeep/{status}.html", context)
    except TemplateDoesNotExist:  # a project without templates
        return HttpResponse(text, status=status, headers=headers, content_type="text/plain")
    return HttpResponse(body, status=status, headers=headers)


def _wants_json(request: HttpRequest) -> bool:
    for accepted in request.accepted_types:
        if accepted.sub_type == "html":
            return False
        if accepted.sub_type == "json" or accepted.sub_type.endswith("+json"):
            return True
    return request.content_type == "application/json"
