"""The optional dependencies of the lab, and the errors if they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, purpose: str, install: str) -> Any:
    """Import a module.

    Raises
    ------
    ImportError
        It is not installed. The message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = f'{purpose} needs {package}, install it with: pip install "{install}"'
        raise ImportError(message, name=package) from error
