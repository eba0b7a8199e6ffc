"""A project with all ways to log in: forms, the admin, an API, async views, django-axes."""

from __future__ import annotations

import tempfile
from pathlib import Path

FOLDER = tempfile.mkdtemp(prefix="doorkeep-django-")
SECRET_KEY = "only for tests"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# A file, since the threads of a server do not share a database in memory.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(Path(FOLDER) / "db.sqlite3"),
        "ATOMIC_REQUESTS": True,
        "OPTIONS": {"timeout": 30},
    }
}
INSTALLED_APPS = [
    "doorkeep.django",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "axes",
]
MIDDLEWARE = [
    "doorkeep.django.middleware.DoorkeepMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "doorkeep.django.backends.DoorkeepBackend",
    "backends.Watched",
]
PASSWORD_HASHERS = ["backends.CountingHasher"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
LOGIN_REDIRECT_URL = "/"
# Its receivers are connected, and do nothing until a test enables them.
AXES_ENABLED = False
AXES_HANDLER = "doorkeep.django.axes.DoorkeepHandler"
SILENCED_SYSTEM_CHECKS = ["axes.W001", "axes.W002", "axes.W003"]
