"""The notebooks in docs/notebooks: kept small and without outputs, and every cell runs.

Cells are executed in order in one namespace, each notebook in an interpreter of its own, without Jupyter. What a cell shows is asked for its
picture or its table, as Jupyter would. A notebook that needs a package which is not installed is skipped. `python test_notebooks.py FILE` executes one and prints what it prints.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import linecache
import subprocess
import sys
import time
import traceback
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "notebooks"
SECONDS = 60
LARGEST = 16_384


def show(thing):
    """What Jupyter asks of a thing that is shown, in the order in which it prefers the answers."""
    if thing is None:
        return
    for name in ("_repr_mimebundle_", "_repr_html_", "_repr_svg_"):
        method = getattr(thing, name, None)
        made = method() if callable(method) else None
        if made is not None:
            text = made if isinstance(made, str) else str(made)
            assert text.strip(), f"{name} of {type(thing).__name__} is empty"
            print(f"<{type(thing).__name__}: {len(text)} characters of {name}>")
            return
    print(repr(thing))


def display(*things):
    for thing in things:
        show(thing)


def execute(path):
    cells = [cell for cell in json.loads(Path(path).read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    namespace = {"__name__": "__main__", "display": display}
    for number, cell in enumerate(cells, 1):
        source, name = "".join(cell["source"]), f"{Path(path).name}, code cell {number}"
        # So that a traceback shows the line that failed.
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            show(eval(compile(ast.Expression(last.value), name, "eval"), namespace))


if __name__ == "__main__":
    try:
        execute(sys.argv[1])
    except Exception:
        # The interpreter's own does not know the lines of cells.
        traceback.print_exc()
        sys.exit(1)
    sys.exit(0)


import pytest  # noqa: E402  what stands above runs without it

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_four_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["emergence", "icu-sepsis", "probe", "watch-td"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_without_outputs(path):
    content = path.read_text(encoding="utf-8")
    notebook = json.loads(content)
    assert notebook["nbformat"] == 4 and content.endswith("}\n") and len(content) < LARGEST
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("code", "markdown") and cell["source"]
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, cell["id"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_a_notebook_lead_somewhere(path):
    import re

    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""):
            assert target.startswith("https://") or (path.parent / target).exists(), target


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    needs = json.loads(path.read_text(encoding="utf-8"))["metadata"]["ictd"]["needs"]
    missing = [name for name in needs if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    began = time.monotonic()
    command = [sys.executable, "-X", "utf8", __file__, str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=3 * SECONDS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert time.monotonic() - began < SECONDS
    assert not list(tmp_path.iterdir()), "a notebook leaves files behind"
