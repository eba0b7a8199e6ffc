"""What a guarded route may answer, as OpenAPI describes it."""

from typing import Any

__all__ = ["responses"]


def _documented(description: str, detail: str, wait: str | None = None) -> dict[str, Any]:
    body = {"type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"]}
    documented: dict[str, Any] = {
        "description": description,
        "content": {"application/json": {"schema": body, "example": {"detail": detail}}},
    }
    if wait is not None:
        documented["headers"] = {"Retry-After": {"description": wait, "schema": {"type": "integer", "minimum": 1}}}
    return documented


responses: dict[int | str, dict[str, Any]] = {
    400: _documented("The account or the address is missing or invalid", "Bad request"),
    429: _documented(
        "Too many attempts", "Too many attempts", "Seconds until an attempt is admitted; absent when no wait would help"
    ),
    503: _documented("Attempts cannot be counted now", "Temporarily unavailable", "Seconds"),
}
"""The answers of a guarded route, for OpenAPI: ``@app.post("/login", responses=responses)``, or for a whole router."""
