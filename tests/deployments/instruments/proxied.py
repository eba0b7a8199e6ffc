"""Loaded into Django projects that keep django-axes: the client behind the proxies that TRUSTED_PROXIES names."""

from __future__ import annotations

import os
from typing import Any

from doorkeep import ClientIp

CLIENT_IP = ClientIp(trusted_proxies=[proxy for proxy in os.environ.get("TRUSTED_PROXIES", "").split(",") if proxy])


def client_ip(request: Any) -> str | None:
    """Return the address of the client, for AXES_CLIENT_IP_CALLABLE."""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR")
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    return CLIENT_IP.resolve(request.META.get("REMOTE_ADDR") or None, headers)
