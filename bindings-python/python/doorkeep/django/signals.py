"""Signals of events, and the most recent events for the admin.

``locked_out`` is sent with ``request`` (or None), ``rules`` (the names of the rules whose lockout engaged) and
``decision``: for a log-in after the password was wrong, for a guarded view when the attempt is counted.
``store_failed`` is sent with ``event`` (``"store_down"`` or ``"store_refused"``) and ``message``, once per outage.

Invariant: neither signals nor log lines contain the value of a key; only the request shows who was locked out.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.signals import user_logged_in
from django.core.signals import setting_changed
from django.dispatch import Signal
from django.http import HttpRequest

from doorkeep import Decision
from doorkeep.django import conf

__all__ = ["areport_lockout", "connect", "locked_out", "recent", "report_lockout", "store_failed"]

locked_out = Signal()
store_failed = Signal()

# The most recent events of this process, the newest last. The log has all events.
recent: deque[logging.LogRecord] = deque(maxlen=50)
_logger = logging.getLogger("doorkeep")
_EVENTS = ("lockout", "store_down", "store_up", "store_refused")


def connect() -> None:
    """Connect to the signals of Django, and to the log lines with the events of a store."""
    setting_changed.connect(_read_settings_again, dispatch_uid="doorkeep.setting_changed")
    user_logged_in.connect(_remember_the_backend, dispatch_uid="doorkeep.user_logged_in")
    # A filter and not a handler: Python prints the lines of a project without logging configuration only if there is no
    # handler.
    _logger.addFilter(_note)


def report_lockout(request: HttpRequest | None, decision: Decision) -> None:
    """Send `locked_out` and log a line, if a lockout engaged."""
    if not decision.engaged:
        return
    _logger.warning("lockout engaged, rules=`%s`", ", ".join(decision.engaged), extra={"doorkeep_event": "lockout"})
    locked_out.send_robust(sender="doorkeep", request=request, rules=decision.engaged, decision=decision)


async def areport_lockout(request: HttpRequest | None, decision: Decision) -> None:
    """Send `locked_out` from an event loop, as `report_lockout` does; receivers may block."""
    if decision.engaged:
        await sync_to_async(report_lockout)(request, decision)


def _note(record: logging.LogRecord) -> bool:
    # Turns log lines of events into signals, since a store reports them only by logging. Never drops a line.
    event = getattr(record, "doorkeep_event", None)
    if event in _EVENTS:
        recent.append(record)
    if event in ("store_down", "store_refused"):
        store_failed.send_robust(sender="doorkeep", event=event, message=record.getMessage())
    return True


def _read_settings_again(*, setting: str, **_: Any) -> None:
    if setting in ("DOORKEEP", "AUTH_USER_MODEL"):
        conf.mask()
        conf.forget()


def _remember_the_backend(*, request: Any, user: Any, **_: Any) -> None:
    # Django recorded the first backend as the one that knew the user. The session must name the backend that really
    # did: it loads the user from now on, other code checks its class, and doorkeep may be removed one day.
    path = getattr(user, "doorkeep_backend", None)
    session = getattr(request, "session", None)
    if path is not None and session is not None and session.get("_auth_user_backend") == user.backend:
        session["_auth_user_backend"] = user.backend = path
