"""The settings. Lines for doorkeep are marked; the rest is that of a new project.

DATABASE is a file, LOCKOUT_WINDOW how long the fifth wrong password locks, TRUSTED_PROXIES the networks of your own
proxies, or unix for one on a socket, separated by commas, REDIS_URL the Redis in which several workers share a budget,
and REDIS_TIMEOUT how long a login waits for it.
"""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "not secret: this is an example"
DEBUG = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]

INSTALLED_APPS = [
    "shop",
    "doorkeep.django",  # doorkeep: checks, templates, the command and the admin page
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
]
MIDDLEWARE = [
    "doorkeep.django.middleware.DoorkeepMiddleware",  # doorkeep: answers a denied login, before any session is read
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "doorkeep.django.backends.DoorkeepBackend",  # doorkeep: counts each guess, then calls the next backend
    "django.contrib.auth.backends.ModelBackend",
]

# Everything that is counted. The first three are for the login, including the admin's.
DOORKEEP = {
    "rules": {
        "login-ip": {"rates": "20/1m,200/1h,1000/1d", "by": ["address"]},
        "login-account-ip": {
            "threshold": 5,
            "lockout_window": os.environ.get("LOCKOUT_WINDOW", "15m"),
            "by": ["account", "address"],
        },
        "login-account": {"rates": "20/1h,50/1d", "by": ["account"]},
        "reset-ip": {"rates": "10/1m,50/1h", "by": ["address"]},
        "reset-send": {"rates": "1/1m,5/1h,10/1d", "by": ["email"]},
        "otp-ip": {"rates": "10/1m,50/1h", "by": ["address"]},
        "otp-verify": {"rates": "5/10m,10/1h,20/1d", "by": ["account"]},
    },
    "login": ["login-ip", "login-account-ip", "login-account"],
    # No other exception gives a guess back. While the database is down, no password can be right.
    "give_back_on": ["django.db.OperationalError"],
    "trusted_proxies": [proxy for proxy in os.environ.get("TRUSTED_PROXIES", "").split(",") if proxy],
}
if redis := os.environ.get("REDIS_URL"):
    DOORKEEP |= {"redis": redis, "prefix": "django-login", "timeout": os.environ.get("REDIS_TIMEOUT", "200ms")}

ROOT_URLCONF = "shop.urls"
ASGI_APPLICATION = "shop.asgi.application"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("DATABASE", BASE_DIR / "db.sqlite3"),
        "ATOMIC_REQUESTS": True,  # strikes are not in the database, and remain if a view fails
    }
}
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
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
# Stands for the codes that your second factor sends or computes.
ONE_TIME_CODES = {"ann": "271828", "root": "314159"}
