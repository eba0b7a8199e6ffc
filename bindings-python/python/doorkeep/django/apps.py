"""The application: connects what listens, and nothing else."""

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
        """Register the checks, and listen."""
        from doorkeep.django import checks, signals

        checks.register_all()
        signals.connect()
