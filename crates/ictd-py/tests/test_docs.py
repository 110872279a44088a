"""The Python in the docs runs, block after block, from the repository's root as a reader would."""

from __future__ import annotations

import pathlib
import re

import pytest

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
