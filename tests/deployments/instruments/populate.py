"""Makes the tables of a Django project, and its users: user-0, user-1 and so on, and ann with the right password.

Run in the project's folder: populate.py COUNT PASSWORD. The others' passwords are never guessed.
"""

import sys

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.hashers import make_password  # noqa: E402
from django.core.management import call_command  # noqa: E402

count, password = int(sys.argv[1]), sys.argv[2]
call_command("migrate", verbosity=0)
User = get_user_model()
User.objects.filter(username="ann").delete()
staff = {"is_staff": True, "is_superuser": True}
unknown = make_password("nobody guesses this")
names = [f"user-{n}" for n in range(count)]
User.objects.bulk_create(
    [User(username="ann", email="ann@example.com", password=make_password(password), **staff)]
    + [User(username=name, email=f"{name}@example.com", password=unknown, **staff) for name in names]
)
