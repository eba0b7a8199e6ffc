"""The application: connects what listens, and hides what must not be printed."""

from django.apps import AppConfig

__all__ = ["DoorkeepConfig"]


class DoorkeepConfig(AppConfig):
    """``"doorkeep.django"`` in ``INSTALLED_APPS``."""

    name = "doorkeep.django"
    # Not the last part of the name: that is Django's own.
    label = "doorkeep"
    verbose_name = "doorkeep"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, keep the store's password out of error reports, and listen."""
        from doorkeep.django import checks, conf, signals

        conf.mask()
        checks.register_all()
        signals.connect()
