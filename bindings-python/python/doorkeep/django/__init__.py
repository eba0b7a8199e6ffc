"""doorkeep for Django: every guess is counted before the password is checked, also in the admin.

::

    INSTALLED_APPS = ["doorkeep.django", ...]
    MIDDLEWARE = ["doorkeep.django.middleware.DoorkeepMiddleware", ...]
    AUTHENTICATION_BACKENDS = [
        "doorkeep.django.backends.DoorkeepBackend",
        "django.contrib.auth.backends.ModelBackend",
    ]
    DOORKEEP = {"rules": ["login_ip", "login_account_ip", "login_account"]}

`doorkeep.django.conf` describes the settings. Does no arithmetic, reads no clock and opens no connection: the limiter
of the settings decides. Tests are in tests/django.
"""

from doorkeep.django.decorators import guarded
from doorkeep.django.requests import client_address, request_keys
from doorkeep.django.signals import locked_out, store_failed

__all__ = ["client_address", "guarded", "locked_out", "request_keys", "store_failed"]
