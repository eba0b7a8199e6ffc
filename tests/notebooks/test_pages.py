"""The pages of the site that show the notebooks with what they gave."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

sys.path.insert(0, str(Path(__file__).parents[2] / "site"))

import notebooks


def test_a_page_has_the_text_the_code_and_the_richest_form_of_each_output(tmp_path: Path) -> None:
    figure = base64.b64encode(b"a figure").decode()
    outputs = [
        new_output("stream", name="stderr", text="\rlab  50%"),
        new_output("stream", name="stdout", text="printed\n"),
        new_output("display_data", data={"image/png": figure, "text/plain": "<Figure>"}),
        new_output("execute_result", data={"text/html": "<table></table>", "text/plain": "a table"}),
        new_output("execute_result", data={"text/plain": "'plain'"}),
    ]
    cells = [new_markdown_cell("# How many?\n\n**Question.**"), new_code_cell("run()", outputs=outputs)]
    path = tmp_path / "1-how.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    text, figures = notebooks.page(path)
    assert text.split("\n\n") == [
        "# How many?",
        "**Question.**",
        "```python\nrun()\n```",
        "```text\nprinted\n```",
        "![How many?, figure 1](1-how-1.png)",
        "<table></table>",
        "```text\n'plain'\n```\n",
    ]
    assert figures == {"1-how-1.png": b"a figure"}
