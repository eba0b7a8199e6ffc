"""The views that are guarded with a decorator: forgotten password and one-time code."""

import secrets

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import PasswordResetView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from doorkeep import Key
from doorkeep.django import guarded, request_keys


def reset_keys(request: HttpRequest) -> list[Key]:
    return request_keys(request, "reset-ip", "reset-send", email=request.POST.get("email"))


# Each requested mail counts, whether or not the account exists and the mail is sent: there is nothing to settle.
@method_decorator(guarded(keys=reset_keys), name="post")
class ForgotPassword(PasswordResetView):
    """Django's own view, counted by address and by email before the account is looked up."""


def code_keys(request: HttpRequest) -> list[Key]:
    return request_keys(request, "otp-ip", "otp-verify", account=request.user.get_username())


@login_required
@require_POST
@guarded(keys=code_keys)
def verify(request: HttpRequest) -> HttpResponse:
    """Check the second factor."""
    sent = settings.ONE_TIME_CODES.get(request.user.get_username())
    # A user who was not sent a code cannot be right, not even with an empty one.
    if sent is None or not secrets.compare_digest(request.POST.get("code", "").encode(), sent.encode()):
        request.attempt.failure()  # counted anyway; from here on, nothing gives it back
        return render(request, "home.html", {"wrong": True}, status=403)
    # Give back, do not forgive: the owner's success must not hand a fresh budget to someone else who is guessing.
    request.attempt.success(give_back=["otp-ip", "otp-verify"])
    request.session["verified"] = True
    return redirect("home")


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Ask for the code, or welcome the user."""
    return render(request, "home.html")
