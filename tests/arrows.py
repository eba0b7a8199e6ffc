"""Compares which room imports which with the tables in ARCHITECTURE.md, "Which way imports go".

A room is a file or a folder directly under a source folder. Fails on an arrow that is in the code and not in the
table, on one that is in the table and not in the code, and on a room that imports one further down in the table. So
what passes has no circle. Run by `make lint`.
"""

import ast
import graphlib
import posixpath
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
HEADING = "## Which way imports go"

Arrows = dict[str, set[str]]


@dataclass(frozen=True)
class Language:
    """How one source folder says what it imports."""

    folder: str
    suffix: str
    # A file that only re-exports the others is not a room.
    root: str
    comment: re.Pattern[str]
    # The names that a file imports from the root of the folder, as they are written there: from its text and its path.
    imported: Callable[[str, PurePosixPath], set[str]]
    # Names that the root re-exports, and the rooms that they come from.
    exported: Callable[[str], dict[str, str]]


def rust_imports(text: str, _file: PurePosixPath) -> set[str]:
    """Return the first segment of each path that begins with `crate::`, also within braces."""
    braces = (name for group in re.findall(r"\bcrate::\{([^}]*)\}", text) for name in group.split(","))
    return set(re.findall(r"\bcrate::(\w+)", text)) | {name.strip().split("::")[0] for name in braces if name.strip()}


def rust_exports(text: str) -> dict[str, str]:
    """Return the room of each name that `pub use room::{...}` lifts to the root."""
    lifted = re.findall(r"^pub use (\w+)::(?:\w+::)*(?:(\w+)|\{([^}]*)\});", text, flags=re.MULTILINE)
    return {name.strip(): room for room, one, several in lifted for name in (one or several).split(",")}


def typescript_imports(text: str, file: PurePosixPath) -> set[str]:
    """Return the first step of each path `./...` or `../...`, as seen from the root."""
    paths = re.findall(r"""\bfrom '(\.[^']+)\.js'""", text)
    return {name.split("/")[0] for name in (posixpath.normpath(file.parent / path) for path in paths)}


def python_imports(text: str, _file: PurePosixPath) -> set[str]:
    """Return the first step of each module below `doorkeep`, and each name that is imported from `doorkeep` itself."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "doorkeep":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("doorkeep."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("doorkeep.")}
    return found


def python_exports(text: str) -> dict[str, str]:
    """Return the room of each name that the package imports from one of its modules."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    lifted = [(node.module.split("."), node.names) for node in nodes if node.module is not None]
    return {name.name: path[1] for path, names in lifted if len(path) > 1 for name in names}


LANGUAGES = [
    Language("core/src", ".rs", "lib.rs", re.compile(r"//[^\n]*"), rust_imports, rust_exports),
    Language("bindings-node/lib", ".ts", "index.ts", re.compile(r"//[^\n]*"), typescript_imports, lambda _: {}),
    # Nothing is stripped as a comment: the syntax tree has none.
    Language("bindings-python/python/doorkeep", ".py", "__init__.py", re.compile("$^"), python_imports, python_exports),
]


def in_code(language: Language) -> Arrows:
    """Return the rooms of a folder and what each imports."""
    folder = ROOT / language.folder
    root = folder / language.root
    exported = language.exported(language.comment.sub("", root.read_text()))
    arrows: Arrows = {}
    for file in sorted(folder.rglob(f"*{language.suffix}")):
        if file == root:
            continue
        relative = file.relative_to(folder)
        room = relative.parts[0].removesuffix(language.suffix)
        names = language.imported(language.comment.sub("", file.read_text()), PurePosixPath(relative))
        arrows.setdefault(room, set()).update(exported.get(name, name) for name in names)
    for room, imports in arrows.items():
        imports.discard(room)
    return arrows


def in_table(page: str, folder: str) -> Arrows:
    """Return the arrows that the page lists for a folder, the lowest room first."""
    section = page.split(HEADING, 1)[1].split("\n## ", 1)[0]
    block = re.search(rf"`{re.escape(folder)}`[^`]*\n```\w*\n(.*?)```", section, flags=re.DOTALL)
    if block is None:
        raise SystemExit(f'ARCHITECTURE.md, "{HEADING[3:]}": no table of `{folder}`')
    # A line that begins with spaces goes on with the one before.
    lines = (line.partition("->") for line in re.sub(r"\n +", " ", block[1]).splitlines())
    return {room.strip(): set(re.findall(r"[\w./-]+", imports)) - {"nothing"} for room, _, imports in lines}


def differences(language: Language, page: str) -> list[str]:
    """Return what is wrong with a table, a line each."""
    code, table = in_code(language), in_table(page, language.folder)
    wrong = [f"{room} is not in the table" for room in sorted(code.keys() - table.keys())]
    wrong += [f"{room} is in the table, and there is no such room" for room in sorted(table.keys() - code.keys())]
    below: set[str] = set()
    for room in (room for room in table if room in code):
        wrong += [f"{room} -> {name} is not in the table" for name in sorted(code[room] - table[room])]
        wrong += [f"{room} -> {name} is not in the code" for name in sorted(table[room] - code[room])]
        wrong += [f"{room} -> {name} points up" for name in sorted((code[room] & code.keys()) - below)]
        below.add(room)
    return [f"{language.folder}: {text}" for text in wrong]


def python_circle() -> list[str]:
    """Return the first circle of imports between modules of the Python package, as one line."""
    source = ROOT / "bindings-python/python"
    files = {".".join(file.relative_to(source).with_suffix("").parts): file for file in source.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): file for name, file in files.items() if name != "doorkeep.__init__"}
    graph: dict[str, set[str]] = {}
    for name, file in modules.items():
        nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
        named = {(node.module, part.name) for node in nodes for part in node.names}
        steps = {f"{module}.{part}" if f"{module}.{part}" in modules else str(module) for module, part in named}
        graph[name] = steps & modules.keys() - {name}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [f"bindings-python: circle of imports: {' -> '.join(reversed(error.args[1]))}"]
    return []


def main() -> None:
    """Print what is wrong, and fail if anything is."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    wrong = [text for language in LANGUAGES for text in differences(language, page)] + python_circle()
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
