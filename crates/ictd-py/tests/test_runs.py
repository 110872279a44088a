"""Lists of run directories, and progress on a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ictd
from ictd._progress import watched

BINARY = Path(os.environ.get("ICTD_BINARY", Path(__file__).parents[3] / "target/release/ictd"))
needs_binary = pytest.mark.skipif(not BINARY.is_file(), reason="no binary; ICTD_BINARY says where it is")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    for kernel in ("softmax", "linear"):
        ictd.pretrain(seeds=2, epochs=3, batch=4, kernel=kernel, out=out)
    return out


@needs_binary
def test_runs_are_listed_as_by_the_command_line(directory: Path) -> None:
    found = ictd.runs(directory)
    done = subprocess.run([BINARY, "runs", directory, "--json"], capture_output=True, text=True, check=True)
    assert found["results"] == json.loads(done.stdout)
    text = subprocess.run([BINARY, "runs", directory], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"})
    assert found.text(100).split() == text.stdout.split()


def test_a_directory_of_several_runs_is_no_run(directory: Path) -> None:
    with pytest.raises(ictd.errors.InputError, match="2 run directories, expected one"):
        ictd.load_run(directory)
    for run in ictd.runs(directory)["results"]:
        assert ictd.load_run(run["directory"]).seeds == [0, 1]


def test_damage_is_seen_where_it_is_looked_for(tmp_path: Path) -> None:
    run = ictd.pretrain(seeds=2, epochs=3, batch=4, out=tmp_path)
    assert run.directory is not None
    checkpoint = next(Path(run.directory).glob("seed_0001/ckpt/step_*"))
    content = bytearray(checkpoint.read_bytes())
    content[-1] ^= 1
    checkpoint.write_bytes(content)
    assert ictd.runs(tmp_path)["results"][0]["damaged"] == 0
    assert ictd.runs(tmp_path, verify=True)["results"][0]["damaged"] == 1
    assert ictd.load_run(tmp_path).seeds == [0]


def test_a_list_of_runs_shows_itself_as_a_table(directory: Path) -> None:
    page = ictd.runs(directory)._repr_html_()
    assert "<table>" in page and "kernel=linear" in page and "<pre>" not in page


def test_progress_is_one_line_after_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[object] = []
    with watched(lambda **standing: heard.append(standing["done"]), True) as told:
        assert told is not None
        for done, seconds in [(1, 1.0), (2, 2.5), (3, 3.0)]:
            told(name="training", done=done, total=9, unit="epochs", seconds=seconds)
    shown = capsys.readouterr().err
    assert heard == [1, 2, 3]
    assert "1 of 9" not in shown and "2 of 9 epochs, 9 s left" in shown and "\n" not in shown
    assert shown.endswith("\r\x1b[K")
    with watched(None, None) as told:
        assert told is None, "stderr is no terminal here"


def test_nothing_is_said_where_stderr_is_no_terminal() -> None:
    code = "import ictd; ictd.pretrain(seeds=1, epochs=3, batch=4)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
