"""Sweeps: the command line's table, byte for byte."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ictd
from ictd.errors import InputError, InputTypeError

BINARY = Path(os.environ.get("ICTD_BINARY", Path(__file__).parents[3] / "target/release/ictd"))
needs_binary = pytest.mark.skipif(not BINARY.is_file(), reason="no binary; ICTD_BINARY says where it is")
PLAN: dict[str, object] = {
    "seeds": range(2),
    "metrics": "every 2",
    "set": {"epochs": 4, "batch": 4, "optimizer": {"lr": 1e-2}},
    "grid": {"kernel": ["softmax", "linear"], "init.gain": {"from": 0.1, "to": 1.0, "points": 2, "scale": "log"}},
}
TOML = """
name = "sweep"
seeds = "0..2"
metrics = "every 2"
[set]
epochs = 4
batch = 4
optimizer.lr = 0.01
[grid]
kernel = ["softmax", "linear"]
"init.gain" = { from = 0.1, to = 1.0, points = 2, scale = "log" }
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ictd.SweepTable:
    return ictd.sweep(PLAN, tmp_path_factory.mktemp("sweep"))


@needs_binary
def test_the_table_is_that_of_the_command_line(table: ictd.SweepTable, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(TOML)
    done = subprocess.run([BINARY, "sweep", plan, "--out", tmp_path / "there"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = (tmp_path / "there/results.csv").read_bytes()
    assert (Path(table.directory) / "results.csv").read_bytes() == theirs == table.csv().encode()
    for curves in (tmp_path / "there/curves").iterdir():
        assert (Path(table.directory) / "curves" / curves.name).read_bytes() == curves.read_bytes()
    # Whoever ran it, it is read; and the same plan finds it finished.
    assert ictd.read_sweep(tmp_path / "there").csv() == table.csv()
    assert ictd.sweep(plan, tmp_path / "there").csv() == table.csv()
    shown = ictd.sweep_show(table.directory, metric="td_loss", x="kernel", y="init.gain", statistic="median")
    arguments = ["--metric", "td_loss", "--x", "kernel", "--y", "init.gain", "--statistic", "median"]
    asked = [BINARY, "sweep", "show", tmp_path / "there", *arguments, "--json", "--out", tmp_path / "show"]
    assert dict(shown) == json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)


def test_columns_have_what_rows_have(table: ictd.SweepTable) -> None:
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert table.done == table.runs == len(rows) == 8 and table.varied == ["kernel", "init.gain"]
    assert table["kernel"].tolist() == ["softmax"] * 4 + ["linear"] * 4
    assert table["init.gain"].tolist() == [0.1, 0.1, 1.0, 1.0] * 2 and table["seed"].tolist() == [0, 1] * 4
    for name in ("v_em", "best.td_loss", "msve"):
        np.testing.assert_array_equal(table[name], [float(row[name]) for row in rows])
    for cell, row in zip(table["value_row"], rows):
        np.testing.assert_array_equal(cell, json.loads(row["value_row"]))
    # A run of a sweep is a run of pretrain.
    run = ictd.pretrain(seeds=[1], epochs=4, batch=4, optimizer__lr=1e-2, kernel="linear", init__gain=1.0)
    assert table["td_loss"][-1] == run[0]["td_loss"] and table["branch"][-1] == run[0]["branch"]


def test_a_table_is_a_data_frame(table: ictd.SweepTable) -> None:
    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.shape == (8, len(table))
    assert frame.groupby("kernel")["td_loss"].mean().notna().all()


def test_a_table_is_a_polars_frame(table: ictd.SweepTable) -> None:
    polars = pytest.importorskip("polars")
    frame = table.to_polars()
    assert frame.shape == (8, len(table)) and frame["value_row"].dtype == polars.List(polars.Float64)


def test_a_table_shows_itself_and_is_pickled(table: ictd.SweepTable) -> None:
    page = table._repr_html_()
    assert "<svg" in page and "<table>" in page and "<pre>" not in page
    assert "8 runs over kernel, init.gain" in repr(table)
    again = pickle.loads(pickle.dumps(table))
    assert again.csv() == table.csv() and list(again) == list(table)


def test_an_interrupted_sweep_goes_on_with_the_same_bytes(table: ictd.SweepTable, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    longer = {**PLAN, "seeds": 3, "set": {"epochs": 3000, "batch": 32}}

    def enough(**standing: object) -> None:
        if standing["done"]:
            raise Enough

    with pytest.raises(Enough):
        ictd.sweep(longer, tmp_path / "one", callback=enough, threads=1)
    begun = ictd.read_sweep(tmp_path / "one")
    assert 0 < begun.done < begun.runs == 12
    assert 0 < ictd.sweep_show(tmp_path / "one")["done"] < 12
    whole = ictd.sweep(longer, tmp_path / "one", threads=2)
    assert whole.csv() == ictd.sweep(longer, tmp_path / "two", threads=1).csv()
    rows = set(begun.csv().splitlines())
    assert rows <= set(whole.csv().splitlines())


def test_diverged_runs_have_no_numbers(tmp_path: Path) -> None:
    plan = {"seeds": 1, "set": {"epochs": 30, "batch": 4, "optimizer.name": "sgd"}, "grid": {"optimizer.lr": [1e-3, 1e30]}}
    table = ictd.sweep(plan, tmp_path)
    assert table["branch"][1] == "diverged" and np.isnan(table["v_em"][1]) and table["value_row"][1] is None
    assert table["value_row"][0].shape == (7,)


@pytest.mark.parametrize(
    ("plan", "error", "text"),
    [
        ({"grids": {}}, InputError, "grids is no key of a plan.*did you mean 'grid'"),
        ({"grid": {"kernel": "softmax"}}, InputError, "grid.kernel is .softmax., expected a list of values"),
        ({"grid": {"kernels": ["softmax"]}}, InputError, "kernels is no key"),
        ({"grid": {"n": [5, 5]}}, InputError, "twice"),
        ({"set": {"epochs": None}}, InputTypeError, "set.epochs is a NoneType"),
        ({3: 4}, InputTypeError, "a key is a int"),
        (5, InputTypeError, "plan is a int"),
        ("quik", InputError, "did you mean 'quick'"),
    ],
)
def test_plans_that_are_none_are_refused(tmp_path: Path, plan: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ictd.sweep(plan, tmp_path)  # type: ignore[arg-type]


def test_what_is_asked_of_a_sweep_has_to_be_there(table: ictd.SweepTable, tmp_path: Path) -> None:
    for asked, text in [({"metric": "mse"}, "metric"), ({"x": "n"}, "x"), ({"statistic": "mean!"}, "statistic is 'mean!'")]:
        with pytest.raises(InputError, match=text):
            ictd.sweep_show(table.directory, **asked)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected the directory of a sweep"):
        ictd.read_sweep(tmp_path)
    with pytest.raises(InputError, match="has another sweep"):
        ictd.sweep({**PLAN, "seeds": 3}, table.directory)
    more = ictd.sweep({**PLAN, "seeds": 3}, tmp_path / "more")
    assert more.done == 12
