"""A service of Django that counts every request by its address."""

import os

SECRET_KEY = "only for the tests"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "urls"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "doorkeep.django"]
MIDDLEWARE = ["doorkeep.django.middleware.DoorkeepMiddleware"]
DOORKEEP = {
    "rules": {"open-ip": {"rates": "5/1h", "by": ["address"]}},
    "paths": {"POST /open": ["open-ip"]},
    "trusted_proxies": [proxy for proxy in os.environ["TRUSTED_PROXIES"].split(",") if proxy],
}
