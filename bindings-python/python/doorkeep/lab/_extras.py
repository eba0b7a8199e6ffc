"""What the lab needs beyond doorkeep, and what is said when it is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, purpose: str, install: str) -> Any:
    """Import a module, or say how to install it.

    Raises
    ------
    ImportError
        It is not there.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = f'{purpose} needs {package}, install it with: pip install "{install}"'
        raise ImportError(message, name=package) from error
