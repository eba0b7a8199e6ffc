"""The URLs. The login and the admin are Django's own, and need nothing from doorkeep here."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, PasswordResetConfirmView, PasswordResetDoneView
from django.urls import path, reverse_lazy

from shop.views import ForgotPassword, home, verify

urlpatterns = [
    path("", home, name="home"),
    path("admin/", admin.site.urls),
    path("login/", LoginView.as_view(), name="login"),
    path("verify/", verify, name="verify"),
    path("forgot-password/", ForgotPassword.as_view(), name="password_reset"),
    path("forgot-password/sent/", PasswordResetDoneView.as_view(), name="password_reset_done"),
    path(
        "forgot-password/<uidb64>/<token>/",
        PasswordResetConfirmView.as_view(success_url=reverse_lazy("login")),
        name="password_reset_confirm",
    ),
]
