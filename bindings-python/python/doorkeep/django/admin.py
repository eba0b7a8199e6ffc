"""A page of the admin: rules, counters and recent events of this process, and a form that unlocks one key.

Read-only except for unlocking, which needs its own permission and is written to the admin's log, without the value.
Invariant: neither the page nor the log shows the value of a key.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from doorkeep import InvalidKeyError, Key
from doorkeep.django import conf, signals
from doorkeep.django.models import Lockout
from doorkeep.django.operating import key_for, policy

__all__ = ["LockoutAdmin", "UnlockForm"]


class UnlockForm(forms.Form):
    """A rule, and the strings that it is keyed by."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rules = [rule for rule in conf.current().rules.values() if rule.by]
        choices = [(rule.name, f"{rule.name} (by {', '.join(rule.by)})") for rule in rules]
        self.fields["rule"] = forms.ChoiceField(choices=choices)
        for word in dict.fromkeys(word for rule in rules for word in rule.by):
            self.fields[_field(word)] = forms.CharField(label=word, required=False, strip=False)

    def clean(self) -> dict[str, Any]:
        """Make the key."""
        given = super().clean() or {}
        if "rule" in given:
            rule = conf.current().rule(given["rule"])
            try:
                given["key"] = key_for(rule, {word: given.get(_field(word)) or "" for word in rule.by})
            except InvalidKeyError as error:
                raise forms.ValidationError(f"rule {rule.name} needs: {', '.join(rule.by)}") from error
        return given


@admin.register(Lockout)
class LockoutAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows the counters of this process's limiter, and unlocks keys."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: there is nothing to add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: there is nothing to change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: there is nothing to delete."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Return the URL of the only page."""
        return [path("", self.admin_site.admin_view(self.page), name="doorkeep_lockout_changelist")]

    def page(self, request: HttpRequest) -> HttpResponse:
        """Show the page, or unlock."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        user: Any = request.user
        may_unlock = user.has_perm("doorkeep.unlock_lockout")
        form = UnlockForm(request.POST or None)
        if request.method == "POST":
            if not may_unlock:
                raise PermissionDenied
            if form.is_valid():
                self._unlock(request, form.cleaned_data["key"])
                return HttpResponseRedirect(request.path)
        context = {
            **self.admin_site.each_context(request),
            "title": "Lockouts",
            "opts": self.opts,
            "form": form if may_unlock else None,
            **_shown(),
        }
        return TemplateResponse(request, "admin/doorkeep/lockouts.html", context)

    def _unlock(self, request: HttpRequest, key: Key) -> None:
        forgotten = conf.current().limiter.reset(key)
        LogEntry.objects.create(
            user_id=request.user.pk,
            content_type_id=ContentType.objects.get_for_model(Lockout).pk,
            object_repr=key.rule,
            action_flag=CHANGE,
            # Without the digest: an address has so few bits that its digest can be reversed within an hour.
            change_message=f"unlocked, rule={key.rule}, forgotten={forgotten}",
        )
        if forgotten:
            self.message_user(request, f"Unlocked under {key.rule}.")
        else:
            self.message_user(request, "The store was not reached: nothing is unlocked there.", messages.ERROR)


def _shown() -> dict[str, Any]:
    configuration = conf.current()
    stats = configuration.limiter.stats()
    rules = [
        {
            "name": rule.name,
            "policy": policy(rule),
            "by": ", ".join(rule.by),
            "allowed": stats["allowed"].get(rule.name, 0),
            "denied": sorted(stats["denied"].get(rule.name, {}).items()),
        }
        for rule in configuration.rules.values()
    ]
    events = [
        {"when": datetime.fromtimestamp(event.created, timezone.utc), "text": event.getMessage()}
        for event in reversed(signals.recent)
    ]
    return {"rules": rules, "stats": stats, "events": events, "in_memory": configuration.limiter.store is None}


def _field(word: str) -> str:
    return f"by_{word.replace('-', '_')}"
