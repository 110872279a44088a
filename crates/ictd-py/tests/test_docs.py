"""The Python in the docs runs, block after block, from the repository's root as a reader would."""

from __future__ import annotations

import inspect
import pathlib
import re
from types import ModuleType

import pytest

import ictd

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = ["README.md", "docs/python.md", "crates/ictd-py/README.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks, f"{page} has no Python"
    names: dict[str, object] = {"__name__": "__main__"}
    for k, block in enumerate(blocks):
        said = re.findall(r"#> (.*)", block)
        exec(compile(block, f"{page}, block {k + 1}", "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        assert said == printed[: len(said)], f"{page}, block {k + 1}: printed {printed}"


#: What is seen in the examples of others, or has none to show: types, and what functions return.
SHOWN_ELSEWHERE = {"BlockLike", "Episode", "Gradient", "NotFittedError", "TaskSource"}


@pytest.mark.parametrize("module", [ictd, ictd.td], ids=lambda module: module.__name__)
def test_what_is_public_has_an_example(module: ModuleType) -> None:
    public = {name: getattr(module, name) for name in module.__all__ if callable(getattr(module, name))}
    lacking = {name for name, what in public.items() if ">>>" not in (inspect.getdoc(what) or "")}
    assert lacking == SHOWN_ELSEWHERE & set(public)
    assert all(inspect.getdoc(what) for what in public.values())
