"""A model without a table, so that the admin has a page and Django has permissions for it.

``doorkeep.view_lockout`` shows the page, ``doorkeep.unlock_lockout`` allows unlocking. Stores no data: counters are in
the limiter.
"""

from django.db import models

__all__ = ["Lockout"]


class Lockout(models.Model):
    """Nothing is stored."""

    class Meta:
        """The permissions."""

        managed = False
        default_permissions = ("view",)
        permissions = (("unlock_lockout", "Can unlock accounts and addresses"),)
        verbose_name = "lockout"
        verbose_name_plural = "lockouts"
