"""Makes pages of the site from files that live elsewhere in the repository, and points links at what the site holds.

Called by mkdocs as a hook. A relative link in any page is written for the repository: here one to a page of the site
becomes a link to that page, and any other one leads to the repository. Invariant: a relative link to nothing is a
warning, and under ``--strict`` a warning fails the build.
"""

import logging
import posixpath
import re
from pathlib import Path

import notebooks
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = {f"notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in ROOT.glob("notebooks/*.ipynb")}
EXECUTED = ROOT / "build" / "notebooks"  # made by make from the notebooks, which hold no outputs
# What the repository shows elsewhere, and where it stands in the site.
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "notebooks/README.md": "notebooks/index.md",
    **NOTEBOOKS,
}
NODE = ROOT / "build" / "docs-src" / "node"  # made by typedoc from the TypeScript sources
NODE_PAGES = "api/node"

BLOCK = re.compile(r"(^ *```.*?^ *```$)", re.M | re.S)
LINK = re.compile(r"\]\((?![a-z]+:|#|/)([^)#\s]+)(#[^)\s]*)?\)")

log = logging.getLogger("mkdocs.hooks.pages")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of docs."""
    for source, page in PAGES.items():
        if source not in NOTEBOOKS:
            files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
            continue
        text, figures = notebooks.page(EXECUTED / Path(source).name)
        kept = f"[The notebook]({config.repo_url}/blob/main/{source}), to run it and to change it."
        files.append(File.generated(config, page, content=f"{text}\n{kept}\n"))
        for name, figure in figures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=figure))
    for path in sorted(NODE.rglob("*.md")):
        if path != NODE / "index.md":  # a list of the others, as the navigation is
            name = path.relative_to(NODE).as_posix()
            files.append(File.generated(config, f"{NODE_PAGES}/{name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page, outside of its code."""
    if page.file.src_uri.startswith(f"{NODE_PAGES}/"):
        return f"# {page.title}\n" + markdown.partition("\n")[2]  # typedoc calls it by its file

    def rewritten(link: re.Match[str]) -> str:
        if page.file.src_uri in NOTEBOOKS.values() and link[1].endswith(".png"):
            return link[0]  # a figure, which stands beside the page
        return f"]({target(link[1], page.file.src_uri, config)}{link[2] or ''})"

    parts = BLOCK.split(markdown)
    return "".join(part if part.lstrip().startswith("```") else LINK.sub(rewritten, part) for part in parts)


def target(link: str, page: str, config: MkDocsConfig) -> str:
    """Give what a link leads to, as seen from a page of the site."""
    source = next((ROOT / source for source, made in PAGES.items() if made == page), Path(config.docs_dir) / page)
    path = posixpath.normpath(posixpath.join(source.parent.relative_to(ROOT).as_posix(), link))
    if not (ROOT / path).exists():
        log.warning("%s links to %s, which does not exist", page, link)
    path = f"{path}/README.md" if f"{path}/README.md" in PAGES else path
    if path in PAGES or path.startswith("docs/"):
        return posixpath.relpath(PAGES.get(path, path.removeprefix("docs/")), posixpath.dirname(page) or ".")
    return f"{config.repo_url}/blob/main/{path}"
