"""Gives the classes of the native module their docstrings where the API of the Python package is made into pages.

Signatures come from the stubs, which say more than a binary can; the texts are in the binary. Loaded by mkdocstrings as
an extension of griffe.
"""

import importlib
import inspect
from typing import Any

import griffe


class NativeDocs(griffe.Extension):
    """Fills in docstrings from the objects themselves."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Walk through the native module when the package has been read."""
        name = f"{pkg.path}._native"
        if "_native" in pkg.members:
            fill(pkg["_native"], importlib.import_module(name))


def fill(holder: griffe.Object, value: object) -> None:
    """Give the members of a module or a class the docstrings that the running ones have."""
    for name, member in list(holder.members.items()):
        real = getattr(value, name, None)
        if isinstance(member, griffe.Alias) or real is None:
            continue
        # Inherited texts, such as those of object, say nothing about the class.
        text = real.__doc__ if real.__doc__ != getattr(object, name, None).__doc__ else None
        if text:
            member.docstring = griffe.Docstring(inspect.cleandoc(text), parent=member, parser="numpy")
        if member.is_class:
            fill(member, real)
            # Stubs of immutable classes have __new__; readers look for the arguments of the constructor.
            if "__new__" in member.members:
                constructor = member.members.pop("__new__")
                constructor.name = "__init__"
                member.members["__init__"] = constructor
