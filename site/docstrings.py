"""Makes the docstrings of the Python package what the pages of its API need.

Signatures of the native module come from its stubs, which say more than a binary can; its texts are in the binary.
Marks of reStructuredText become Markdown. Loaded by mkdocstrings as an extension of griffe.
"""

import importlib
import inspect
import re
from typing import Any

import griffe

SESSION = re.compile(r"^(>>> .*\n(?:.+\n?)*)", re.M)
TABLE = re.compile(r"^(=+ +=+\n(?:.*\n)+?=+ +=+)$", re.M)


class Docstrings(griffe.Extension):
    """Goes through the package when it has been read."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Fill in what the native module says of itself, then write all in Markdown."""
        if "_native" in pkg.members:
            fill(pkg["_native"], importlib.import_module(f"{pkg.path}._native"))
        rewrite(pkg)


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


def rewrite(holder: griffe.Object) -> None:
    """Write the docstrings of an object and of all that it holds in Markdown."""
    if holder.docstring:
        holder.docstring.value = markdown(holder.docstring.value)
    for member in holder.members.values():
        if not isinstance(member, griffe.Alias):
            rewrite(member)


def markdown(text: str) -> str:
    """Turn marks of literal blocks, sessions and simple tables into their like."""
    text = re.sub(r"^::\n\n?", "", text, flags=re.M)
    text = re.sub(r"::$", ":", text, flags=re.M)
    if "Examples\n---" not in text:  # of such a section griffe makes blocks itself
        text = SESSION.sub(lambda found: f"```pycon\n{found[1].rstrip()}\n```\n", text)
    return TABLE.sub(r"```text\n\1\n```", text)
