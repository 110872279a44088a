"""Ctrl-C ends every kind of long call within a second, and callbacks are told of it and end it."""

from __future__ import annotations

import os

import numpy as np
import pytest
from interrupts import ends_by_callback, ends_within_a_second

import ictd

CALLS = {
    "forward": ("ictd.forward(x, r, gamma=0.9, layers=400)", "x, r = np.random.default_rng(0).normal(size=(40, 3001, 8)), np.ones((40, 3000))"),
    "study": ("ictd.msve(tasks=200_000)", ""),
    "reproduction": ("ictd.reproduce(out=tempfile.mkdtemp())", "import tempfile"),
    "fit": (
        "ictd.SoftmaxTD(0.9).fit(x, y, episode=np.repeat(np.arange(1000), 20), truncated=np.tile([0] * 19 + [1], 1000))",
        "x, y = np.random.default_rng(0).normal(size=(20000, 6)), np.ones(20000)",
    ),
    "predict": (
        "model.predict(np.random.default_rng(0).normal(size=(4_000_000, 1)))",
        "x = np.random.default_rng(0).normal(size=(600, 1))\n"
        "model = ictd.KernelLSTD(0.5, temperature=0.5, ridge=0.1).fit(x, x[:, 0], episode=np.arange(600), terminated=np.ones(600))",
    ),
    "task": ("ictd.Task(np.full((4000, 4000), 1 / 4000), np.ones(4000), 0.9, np.ones((4000, 1)))", ""),
    "spectrum": ("task.pair_lambda_r", "task = ictd.task('dense', states=700)"),
    "similarities": ("ictd.similarities(np.ones((600, 600)))", ""),
    "least squares": ("ictd.td.least_squares_td(np.ones((4001, 3000)), np.ones(4000), gamma=0.9)", ""),
    # A function that is compiled looks at no signals itself.
    "own similarity": ("ictd.td.nonparametric_td(np.ones((2001, 1)), np.ones(2000), kappa=np.vdot, gamma=0.9)", ""),
}


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_it_within_a_second(name: str) -> None:
    ends_within_a_second(*CALLS[name])


def test_callbacks_are_told_of_fits_and_evaluations() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20000, 6)), rng.normal(size=20000)
    rest = {"episode": np.repeat(np.arange(1000), 20), "truncated": np.tile([0] * 19 + [1], 1000)}
    assert ends_by_callback(lambda enough: ictd.SoftmaxTD(0.9).fit(x, y, **rest, callback=enough))["seconds"] >= 0
    log = ictd.Log(x, y, **rest)
    assert ends_by_callback(lambda enough: ictd.evaluate(log, 0.9, callback=enough))["seconds"] >= 0
