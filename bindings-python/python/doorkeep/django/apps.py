"""The application: connects signals, and hides passwords from error reports."""

from django.apps import AppConfig

__all__ = ["DoorkeepConfig"]


class DoorkeepConfig(AppConfig):
    """``"doorkeep.django"`` in ``INSTALLED_APPS``."""

    name = "doorkeep.django"
    # Not the last part of the name, which is Django's own.
    label = "doorkeep"
    verbose_name = "doorkeep"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, hide the store's password from error reports, and connect signals."""
        from doorkeep.django import checks, conf, signals

        conf.mask()
        checks.register_all()
        signals.connect()
