"""Makes a page of the site from a notebook that was run, with its outputs and figures.

Runs nothing itself: `make notebooks` does. Invariant: what a cell gave stands below its code, in the richest form that
a page can show. Tested in `tests/notebooks/test_pages.py`.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat


def page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Give the Markdown of an executed notebook, and its figures by the names under which the Markdown shows them."""
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    figures: dict[str, bytes] = {}
    parts: list[str] = []
    title = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            title = title or cell.source.partition("\n")[0].lstrip("# ")
            continue
        parts.append(fenced("python", cell.source))
        for kind, data in shown(cell.outputs):
            if kind == "image/png":
                name = f"{path.stem}-{len(figures) + 1}.png"
                figures[name] = base64.b64decode(data)
                parts.append(f"![{title}, figure {len(figures)}]({name})")
            else:
                parts.append(data if kind == "text/html" else fenced("text", data))
    return "\n\n".join(parts) + "\n", figures


def shown(outputs: list[Any]) -> Iterator[tuple[str, str]]:
    """Give what a cell gave, each in its richest form; a bar of progress is gone when its run is over."""
    for output in outputs:
        if output.output_type == "stream":
            if output.name == "stdout":
                yield "text/plain", output.text
            continue
        kind = next(kind for kind in ("image/png", "text/html", "text/plain") if kind in output.data)
        yield kind, output.data[kind]


def fenced(language: str, text: str) -> str:
    """Write text as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"
