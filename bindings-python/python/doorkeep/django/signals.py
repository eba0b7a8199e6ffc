"""What happened, for whoever listens, and the last of it for the admin.

``locked_out`` is sent with ``request`` (or None), ``rules`` (the names of the rules whose lockout engaged) and
``decision``: for a log-in once the password was wrong, for a guarded view when the attempt was counted.
``store_failed`` is sent with ``event`` (``"store_down"`` or ``"store_refused"``) and ``message``, once for each outage.

Invariant: neither signal nor line holds the value of a key; who was locked out is in the request, if anywhere.
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

# The last events of this process, the newest last. The log has all of them.
recent: deque[logging.LogRecord] = deque(maxlen=50)
_logger = logging.getLogger("doorkeep")
_EVENTS = ("lockout", "store_down", "store_up", "store_refused")


def connect() -> None:
    """Listen to Django, and to the log lines by which a store tells its events."""
    setting_changed.connect(_read_settings_again, dispatch_uid="doorkeep.setting_changed")
    user_logged_in.connect(_remember_the_backend, dispatch_uid="doorkeep.user_logged_in")
    # No handler: one would silence the lines in a project that configures no logging, where Python prints them.
    _logger.addFilter(_note)


def report_lockout(request: HttpRequest | None, decision: Decision) -> None:
    """Send `locked_out` and log a line, if a lockout engaged."""
    if not decision.engaged:
        return
    _logger.warning("lockout engaged, rules=`%s`", ", ".join(decision.engaged), extra={"doorkeep_event": "lockout"})
    locked_out.send_robust(sender="doorkeep", request=request, rules=decision.engaged, decision=decision)


async def areport_lockout(request: HttpRequest | None, decision: Decision) -> None:
    """As `report_lockout`, where receivers may wait."""
    if decision.engaged:
        await sync_to_async(report_lockout)(request, decision)


def _note(record: logging.LogRecord) -> bool:
    # Turns the lines of events into signals, since a store has no other way to tell them. Keeps none back.
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
    # Django noted the first backend as the one that knew the user. The session must name the one that did: it is asked
    # for the user from now on, other code looks at its kind, and doorkeep may be removed one day.
    path = getattr(user, "doorkeep_backend", None)
    session = getattr(request, "session", None)
    if path is not None and session is not None and session.get("_auth_user_backend") == user.backend:
        session["_auth_user_backend"] = user.backend = path
