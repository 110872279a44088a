"""Studies: what the command line finds, as dictionaries."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
from interrupts import ends_by_callback

import ictd
from ictd import results
from ictd.errors import InputError, InputTypeError

BINARY = Path(os.environ.get("ICTD_BINARY", Path(__file__).parents[3] / "target/release/ictd"))
needs_binary = pytest.mark.skipif(not BINARY.is_file(), reason="no binary; ICTD_BINARY says where it is")


def command(*arguments: object) -> object:
    done = subprocess.run([BINARY, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ictd.Reproduction:
    return ictd.reproduce(only=["tsm-cost", "fig4"], quick=True, out=tmp_path_factory.mktemp("reproduce"))


@needs_binary
def test_a_reproduction_is_that_of_the_command_line(found: ictd.Reproduction, tmp_path: Path) -> None:
    theirs = command("reproduce", "--only", "tsm-cost,fig4", "--quick", "--out", tmp_path)
    assert dict(found) == theirs
    for name in ("claims.json", "fig4.csv", "fig4.svg"):
        there = tmp_path / name
        assert not there.is_file() or there.read_bytes() == (Path(found.directory) / name).read_bytes(), name


def test_a_reproduction_has_verdicts_and_figures(found: ictd.Reproduction, tmp_path: Path) -> None:
    assert found.verdicts["tsm-cost"] == "reproduced"
    assert {claim["id"] for claim in found["claims"]} == {*found.verdicts}
    assert found.figures and all(figure.svg().startswith("<svg") for figure in found.figures.values())
    name, figure = next(iter(found.figures.items()))
    for ending, first in (("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        figure.save(tmp_path / f"{name}.{ending}")
        assert (tmp_path / f"{name}.{ending}").read_bytes().startswith(first)
    page = found._repr_html_()
    assert "<table>" in page and "<svg" in page and "<pre>" not in page and "reproduced" in page
    assert "tsm-cost" in found.text(80)


def test_what_is_finished_is_not_run_again(found: ictd.Reproduction) -> None:
    again = ictd.reproduce(only="fig4", quick=True, out=found.directory)
    assert again["claims"] == [claim for claim in found["claims"] if claim["id"] == "fig4"]


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"only": "fig99"}, InputError, "only: 'fig99' is unknown, expected claims or studies of the tables in docs/reproduce.md"),
        ({"only": [3]}, InputTypeError, "only has a int"),
        ({"paper": "third"}, InputError, "paper is 'third', expected one of main"),
        ({"only": "fig4", "threads": 0}, InputError, "threads is 0"),
        ({"only": "fig4", "seeds": 0}, InputError, "seeds is '0'"),
    ],
)
def test_what_is_refused_is_refused_in_the_librarys_words(
    tmp_path: Path, given: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        ictd.reproduce(**{"out": tmp_path, "quick": True, **given})  # type: ignore[arg-type]


@needs_binary
def test_branches_are_those_of_the_command_line(tmp_path: Path) -> None:
    small = {"epochs": 2, "batch": 4, "n": 3}
    found = ictd.branches("kernels", seeds=2, out=tmp_path / "here", set=small)
    typed = [part for key, value in small.items() for part in ("--set", f"{key}={value}")]
    assert dict(found) == command("branches", "--map", "kernels", "--seeds", "2", "--out", tmp_path / "there", *typed)
    assert (tmp_path / "here/results.csv").read_bytes() == (tmp_path / "there/results.csv").read_bytes()
    assert found.figures and found.tables
    with pytest.raises(InputError, match="map is 'kernel', expected one of settings, kernels.*did you mean"):
        ictd.branches("kernel", seeds=1, out=tmp_path / "here")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'query=next' is what the map varies"):
        ictd.branches("kernels", seeds=1, out=tmp_path / "other", query="next")


@needs_binary
def test_readings_are_those_of_the_command_line(tmp_path: Path) -> None:
    small = {"epochs": 2, "batch": 2, "n": 3}
    found = ictd.readings(seeds=2, out=tmp_path / "here", set=small)
    typed = [part for key, value in small.items() for part in ("--set", f"{key}={value}")]
    assert dict(found) == command("readings", "--seeds", "2", "--out", tmp_path / "there", *typed)
    assert {"rows", "gradients"} <= {*found}


@needs_binary
def test_the_mirror_block_is_that_of_the_command_line(tmp_path: Path) -> None:
    found = ictd.mirror(4, epochs=20, tasks=4)
    theirs = command("mirror", "--seeds", "4", "--epochs", "20", "--tasks", "4", "--out", tmp_path)
    assert dict(found) == theirs


@needs_binary
def test_control_is_that_of_the_command_line(tmp_path: Path) -> None:
    small = {"mdps": 2, "updates": 5, "transitions": 16, "exact_mdps": 2, "sweeps": 5, "trials": 2}
    found = ictd.control(seed=3, **small)
    typed = [part for key, value in small.items() for part in (f"--{key.replace('_', '-')}", value)]
    assert dict(found) == command("control", "--seed", "3", "--out", tmp_path, *typed)
    assert isinstance(found.holds, bool)


def test_copies_of_results_show_themselves(found: ictd.Reproduction, tmp_path: Path) -> None:
    study = ictd.regimes("dense", tasks=1, states=3)
    for result in (study, found):
        for again in (copy.copy(result), copy.deepcopy(result)):
            assert type(again) is type(result) and again == result and again.text() == result.text()
            assert list(again.figures) == list(result.figures) and again.holds == result.holds
        again["new"] = [1]
        assert "new" not in result
        kept = pickle.loads(pickle.dumps(result))
        assert type(kept) is dict and kept == result
    deep = copy.deepcopy(study)
    deep["cells"].clear()
    assert study["cells"] and copy.copy(found).directory == found.directory
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = study.nothing


def test_tables_keep_names_that_look_like_numbers() -> None:
    assert results.column(["007", "12"]).tolist() == ["007", "12"]
    assert results.column(["1_000", "2"]).tolist() == ["1_000", "2"]
    assert results.column(["7", "-12", "0"]).tolist() == [7, -12, 0]
    assert np.array_equal(results.column(["0.5", "", "-1e05"]), [0.5, np.nan, -1e5], equal_nan=True)


def test_a_study_is_told_of_and_interrupted() -> None:
    assert "mirror" in ends_by_callback(lambda enough: ictd.mirror(40, callback=enough))["name"]
