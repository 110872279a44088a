"""Training: the command line's numbers, whoever asks and however it is interrupted."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from interrupts import ends_by_callback, least

import ictd
from ictd.errors import DivergedError, FileError, IctdError, InputError, InputTypeError

BINARY = Path(os.environ.get("ICTD_BINARY", Path(__file__).parents[3] / "target/release/ictd"))
needs_binary = pytest.mark.skipif(not BINARY.is_file(), reason="no binary; ICTD_BINARY says where it is")
TINY = {"epochs": 6, "batch": 8}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def files(directory: Path) -> dict[str, bytes]:
    """All files of finished seeds that do not say when or by whom they were made."""
    timed = ("provenance.json", "result.json", ".lock")
    found = (path for path in sorted(directory.rglob("*")) if path.is_file())
    wanted = (path for path in found if path.name not in timed and "tfevents" not in path.name)
    return {str(path.relative_to(directory)): path.read_bytes() for path in wanted}


# --- the command line's numbers


@needs_binary
@pytest.mark.parametrize(
    ("preset", "overrides"),
    [
        ("paper", {}),
        ("mask-relaxed", {"batches": 3}),
        ("paper", {"kernel": "linear", "optimizer__lr": 3e-4, "tied": False}),
        ("paper", {"task__kind": "cartpole", "states": 2}),
    ],
)
def test_results_are_those_of_the_command_line(tmp_path: Path, preset: str, overrides: dict[str, object]) -> None:
    run = ictd.pretrain(preset, [4, 1], **TINY, **overrides)
    words = {key.replace("__", "."): str(value).lower() for key, value in {**TINY, **overrides}.items()}
    typed = [part for key, value in words.items() for part in ("--set", f"{key}={value}")]
    done = command("pretrain", "--preset", preset, "--seeds", "4,1", "--json", "--out", tmp_path, *typed)
    assert done.returncode == 0, done.stderr
    assert list(run) == json.loads(done.stdout)["seeds"]
    # What the command wrote is read as the same, in the order of its directories.
    loaded = ictd.load_run(tmp_path)
    assert list(loaded) == sorted(run, key=lambda found: found["seed"])
    assert loaded.config == run.config
    ours = run.curves()
    for seed in run.seeds:
        last = next(loaded.directory and Path(loaded.directory).glob(f"seed_{seed:04}/ckpt/step_*.safetensors"))
        assert ictd.load_checkpoint(last)._bytes == run.checkpoint(seed)._bytes
        best = ictd.load_checkpoint(last.with_name("best.safetensors"))
        assert best._bytes == run.checkpoint(seed, "best")._bytes
    theirs = loaded.curves()
    for name, column in ours.items():
        order = np.argsort(ours["seed"], kind="stable")
        np.testing.assert_array_equal(column[order], theirs[name], err_msg=name)


@needs_binary
def test_files_are_those_of_the_command_line(tmp_path: Path) -> None:
    run = ictd.pretrain(seeds=2, out=tmp_path / "here", **TINY)
    typed = [part for key, value in TINY.items() for part in ("--set", f"{key}={value}")]
    command("pretrain", "--seeds", "2", "--out", tmp_path / "there", *typed)
    saved = Path(ictd.pretrain(seeds=2, **TINY).save(tmp_path / "saved"))
    here, there = files(tmp_path / "here"), files(tmp_path / "there")
    assert here == there
    assert files(tmp_path / "saved") == there
    assert run.directory is not None and Path(run.directory).name == saved.name


@needs_binary
def test_the_configuration_is_printed_as_by_the_command_line() -> None:
    assert ictd.print_config(n=20) == command("pretrain", "--print-config", "--set", "n=20").stdout


# --- one meaning, however it is said


def test_seeds_mean_the_same_however_they_are_given() -> None:
    def seeds(given: object) -> list[int]:
        return ictd.pretrain(seeds=given, epochs=1, batch=2, batches=1).seeds  # type: ignore[arg-type]

    assert seeds(2) == [0, 1]
    assert seeds(np.int32(2)) == [0, 1]
    assert seeds(range(3, 5)) == [3, 4]
    assert seeds([7]) == [7]
    assert seeds(np.array([5, 1])) == [5, 1]
    assert seeds("0,4..6") == [0, 4, 5]


@pytest.mark.parametrize("seeds", [0, -1, [], "x", [1, 1], range(0, -3), range(2_000_001, 0, -1)])
def test_seeds_that_are_none_are_refused(seeds: object) -> None:
    with pytest.raises(InputError, match="^seeds is '"):
        ictd.pretrain(seeds=seeds, epochs=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("seeds", [2.0, None, True, ["1"], [1.5], b"5", {"a": 1}])
def test_seeds_of_other_types_are_type_errors(seeds: object) -> None:
    with pytest.raises(InputTypeError, match="^seeds "):
        ictd.pretrain(seeds=seeds, epochs=1)  # type: ignore[arg-type]


def test_a_configuration_is_the_same_as_keywords_set_dictionary_or_file(tmp_path: Path) -> None:
    by_keywords = ictd.pretrain(seeds=1, optimizer__lr=0.01, states=16, **TINY)
    by_set = ictd.pretrain(seeds=1, set={"optimizer.lr": 0.01, "states": 16}, **TINY)
    by_texts = ictd.pretrain(seeds=1, set=["optimizer.lr=0.01", "states=16"], **TINY)
    by_nested = ictd.pretrain({"optimizer": {"lr": 0.01}, "task": {"states": 16}, **TINY}, 1)
    by_dotted = ictd.pretrain({"optimizer.lr": 0.01, "states": np.int64(16), **TINY}, 1)
    file = tmp_path / "mine.toml"
    file.write_text("states = 16\nepochs = 6\nbatch = 8\noptimizer.lr = 0.01\n")
    by_file = ictd.pretrain(file, 1)
    again = ictd.pretrain(by_file.config, 1)
    for other in (by_set, by_texts, by_nested, by_dotted, by_file, again):
        assert list(other) == list(by_keywords) and other.config == by_keywords.config
    assert by_file.name == "mine" and by_keywords.name == "paper"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"epoch": 5}, "epoch is no key, expected one of .*did you mean 'epochs'"),
        ({"optimizer__rate": 5}, "optimizer.rate is no key"),
        ({"epochs": 0}, "epochs is 0, expected 1 to 1000000000"),
        ({"epochs": 1.5}, "epochs"),
        ({"epochs": "many"}, "epochs"),
        ({"task__gamma": 1.0}, "gamma is 1, expected 0 <= gamma < 1"),
        ({"temperature": float("nan")}, "temperature is NaN"),
        ({"query": "qeury"}, "query"),
        ({"kernel": "sigmoid"}, "kernel"),
        ({"threads": 0}, "threads is 0, expected 1 to 1024"),
        ({"checkpoint_every": 0}, "checkpoint_every is 0"),
        ({"fresh": True, "resume": True, "out": "nowhere"}, "resume: beside fresh"),
        ({"preset": "papers"}, "preset is 'papers', expected one of paper"),
    ],
)
def test_what_is_refused_is_refused_in_the_librarys_words(given: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        ictd.pretrain(**{"seeds": 1, **given})  # type: ignore[arg-type]
    assert isinstance(caught.value, ValueError) and len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("given", [{"epochs": None}, {"epochs": [1]}, {"preset": 5}, {"set": 5}, {"set": [5]}, {"task": 5}])
def test_values_of_other_types_are_type_errors(given: dict[str, object]) -> None:
    with pytest.raises(InputTypeError) as caught:
        ictd.pretrain(**{"seeds": 1, **given})  # type: ignore[arg-type]
    assert isinstance(caught.value, TypeError)


def test_a_file_that_is_not_there_is_an_error_of_files(tmp_path: Path) -> None:
    for missing in (lambda: ictd.pretrain(tmp_path / "no.toml"), lambda: ictd.load_checkpoint(tmp_path / "no")):
        with pytest.raises(FileNotFoundError) as caught:
            missing()
        assert isinstance(caught.value, FileError)
    with pytest.raises(OSError):
        ictd.load_run(tmp_path / "no")
    with pytest.raises(InputError, match="no run directory"):
        ictd.load_run(tmp_path)


def test_divergence_has_its_error() -> None:
    with pytest.raises(DivergedError) as caught:
        ictd.pretrain(seeds=1, epochs=50, optimizer__name="sgd", optimizer__lr=1e30, batch=8)
    assert isinstance(caught.value, ArithmeticError)


# --- threads, processes, interruptions


def test_any_number_of_threads_gives_the_same_bytes() -> None:
    def parts(threads: int) -> tuple[object, ...]:
        run = ictd.pretrain(seeds=3, threads=threads, **TINY)
        return [*run], run._trained.parts()[1]

    assert parts(1) == parts(2) == parts(7)


def test_a_callback_is_told_how_far_training_is_and_ends_it() -> None:
    standing = ends_by_callback(lambda enough: ictd.pretrain(seeds=4, epochs=100_000, threads=1, callback=enough))
    assert standing["name"] == "training paper" and standing["unit"] == "epochs" and standing["total"] == 400_000


def script(text: str, *arguments: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)], stdout=pipe, stderr=pipe, text=True)


def test_an_interrupt_ends_training_within_a_second_and_resume_ends_with_the_same_bytes(tmp_path: Path) -> None:
    process = script(
        """
        import sys, ictd
        try:
            ictd.pretrain(seeds=2, epochs=20_000, batch=64, out=sys.argv[1], callback=lambda **_: print("on", flush=True))
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """,
        tmp_path / "stopped",
    )
    assert process.stdout is not None
    while "on" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    while (said := process.stdout.readline()) != "stopped\n":
        assert said, "training ended before it was interrupted"
    # Here no second attempt is made: the machine may be busy.
    assert time.monotonic() - start < 2.0 + least()
    process.communicate(timeout=30)
    left = list((tmp_path / "stopped").rglob("step_*.safetensors"))
    assert left and not list((tmp_path / "stopped").rglob("result.json"))
    resumed = ictd.pretrain(seeds=2, epochs=20_000, batch=64, out=tmp_path / "stopped", resume=True)
    whole = ictd.pretrain(seeds=2, epochs=20_000, batch=64, out=tmp_path / "whole")
    assert list(resumed) == list(whole)
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


def test_finished_seeds_are_taken_as_they_are(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = ictd.pretrain(seeds=1, out=tmp_path, **TINY)
    with caplog.at_level(logging.INFO, logger="ictd"):
        second = ictd.pretrain(seeds=2, out=tmp_path, **TINY)
    assert "1 seed is finished" in caplog.text
    assert second[0] == first[0] and second.seeds == [0, 1]
    third = ictd.pretrain(seeds=1, out=tmp_path, **TINY)
    assert third.train_seconds == 0 and list(third) == list(first)
    assert ictd.pretrain(seeds=1, out=tmp_path, fresh=True, **TINY).train_seconds > 0


def _in_a_child(start: str) -> list[dict[str, object]]:
    with multiprocessing.get_context(start).Pool(2) as pool:
        runs = pool.map(_train, [0, 1])
    return [run[0] for run in runs]


def _train(seed: int) -> ictd.Run:
    return ictd.pretrain(seeds=[seed], **TINY)  # type: ignore[arg-type]


@pytest.mark.parametrize("start", [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()])
def test_children_train_what_their_parent_does(start: str) -> None:
    # The parent has trained before it forks.
    here = list(ictd.pretrain(seeds=2, **TINY))
    assert _in_a_child(start) == here


# --- what a run is


@pytest.fixture(scope="module")
def run() -> ictd.Run:
    return ictd.pretrain("paper", [3, 0], **TINY)  # type: ignore[arg-type]


def test_a_run_is_a_list_of_results(run: ictd.Run) -> None:
    assert isinstance(run, list) and len(run) == 2 and run.seeds == [3, 0]
    assert run[0]["seed"] == 3 and {"branch", "v_em", "best", "best_step", "msve"} <= {*run[0]}
    assert run.train_seconds > 0 and run.directory is None
    assert run.config["epochs"] == 6 and run.config["optimizer"]["name"] == "adam"
    assert "seed" in run.text(80) and all(len(line) <= 80 for line in run.text(80).splitlines())


def test_curves_are_columns_of_one_length(run: ictd.Run) -> None:
    curves = run.curves()
    assert list(curves)[:3] == ["seed", "step", "td_loss"] and {len(column) for column in curves.values()} == {60}
    assert curves["seed"].tolist() == [3] * 30 + [0] * 30 and curves["step"].tolist() == [*range(1, 31)] * 2
    known = ~np.isnan(curves["eval_msve"])
    assert known.sum() == 12 and (curves["step"][known] % 5 == 0).all()
    last = curves["step"] == 30
    assert curves["v_em"][last].tolist() == [np.float32(found["v_em"]) for found in run]


def test_a_run_is_a_data_frame(run: ictd.Run) -> None:
    pandas = pytest.importorskip("pandas")
    frame = run.to_pandas()
    assert frame["seed"].tolist() == [3, 0] and frame["best.td_loss"][1] == run[1]["best"]["td_loss"]
    assert len(pandas.DataFrame(run.curves())) == 60


def test_checkpoints_are_what_was_trained(run: ictd.Run, tmp_path: Path) -> None:
    last = run.checkpoint(3)
    assert (last.seed, last.step, last.layers, last.n, last.kernel) == (3, 30, 3, 10, "softmax")
    assert last.temperature == 1.2 and last.gamma == 0.9 and last.block == "tsm" and last.diagonal_mix == 0
    np.testing.assert_array_equal(last.V[-1], run[0]["value_row"])
    np.testing.assert_array_equal(np.diag(last.A)[:4], run[0]["score_diag"])
    scores = last.scores()
    assert {key: run[0][key] for key in scores} == scores
    best = run.checkpoint(3, "best")
    assert best.step == run[0]["best_step"] and best.scores()["v_em"] == run[0]["best"]["v_em"]
    last.save(tmp_path / "x.safetensors")
    again = ictd.load_checkpoint(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(again.V, last.V)
    with pytest.raises(InputError, match="seed is 9, expected one of those trained: 3, 0"):
        run.checkpoint(9)
    with pytest.raises(InputError, match="which is 'last', expected final or best"):
        run.checkpoint(3, "last")  # type: ignore[arg-type]
    damaged = bytearray((tmp_path / "x.safetensors").read_bytes())
    damaged[-5] ^= 1
    (tmp_path / "x.safetensors").write_bytes(damaged)
    with pytest.raises(InputError, match="damaged"):
        ictd.load_checkpoint(tmp_path / "x.safetensors")


def test_layers_of_their_own_are_stacked() -> None:
    last = ictd.pretrain(seeds=1, tied=False, layers=2, **TINY).checkpoint(0)  # type: ignore[arg-type]
    assert last.V.shape == last.A.shape == (2, 7, 7) and not np.array_equal(last.V[0], last.V[1])


def test_safetensors_reads_the_same(run: ictd.Run, tmp_path: Path) -> None:
    reader = pytest.importorskip("safetensors.numpy")
    run.checkpoint(0).save(tmp_path / "x.safetensors")
    tensors = reader.load_file(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(tensors["V"], run.checkpoint(0).V)
    np.testing.assert_array_equal(tensors["A"], run.checkpoint(0).A)


def test_pickled_runs_are_the_same(run: ictd.Run) -> None:
    again = pickle.loads(pickle.dumps(run))
    assert isinstance(again, ictd.Run) and list(again) == list(run) and again.config == run.config
    assert again.text() == run.text() and again.train_seconds == run.train_seconds
    assert again.checkpoint(3)._bytes == run.checkpoint(3)._bytes
    for name, column in run.curves().items():
        np.testing.assert_array_equal(again.curves()[name], column)
    assert again.figures["fig3"].svg() == run.figures["fig3"].svg()


def test_a_run_shows_itself(run: ictd.Run) -> None:
    assert [*run.figures] == ["fig3", "fig5"] and run.figures["fig5"].svg().startswith("<svg")
    page = run._repr_html_()
    assert page.count("<svg") == 2 and "<table>" in page and "<pre>" not in page
    assert "2 seeds" in page


def test_saved_runs_are_loaded(run: ictd.Run, tmp_path: Path) -> None:
    place = run.save(tmp_path)
    loaded = ictd.load_run(place)
    assert list(loaded) == sorted(run, key=lambda found: found["seed"]) and loaded.directory == place
    assert (Path(place) / "figures/fig3.svg").read_text() == loaded.figures["fig3"].svg()
    found = ictd.runs(tmp_path, verify=True)["results"]
    assert [(r["name"], r["finished"], r["damaged"]) for r in found] == [("paper", 2, 0)]
    run.save(tmp_path)


# --- families of one's own


class Chain:
    """The library's own task file, drawn by Python."""

    def __init__(self, task: dict[str, object]) -> None:
        self.task = task
        self.asked: list[tuple[int, int]] = []

    def draw(self, seed: int, index: int) -> dict[str, object]:
        self.asked.append((seed, index))
        return self.task


class Random:
    """Dense chains, of numbers that depend on seed and index alone."""

    def __init__(self, states: int = 6, features: int = 3) -> None:
        self.sizes = states, features

    def draw(self, seed: int, index: int) -> object:
        m, d = self.sizes
        rng = np.random.default_rng([seed, index])
        task = type("Task", (), {})()
        P = rng.random((m, m))
        task.P, task.rewards, task.gamma = P / P.sum(axis=1, keepdims=True), rng.normal(size=m), 0.8
        task.features, task.initial = rng.uniform(-1, 1, (m, d)), None
        return task


@needs_binary
def test_tasks_of_python_are_those_of_a_file(tmp_path: Path) -> None:
    made = json.loads(command("task", "dense", "--states", "5", "--seed", "3", "--json").stdout)
    path = tmp_path / "task.json"
    path.write_text(json.dumps(made))
    keys = {"P": "transitions", "initial": "initial_distribution"}
    task = {key: made[keys.get(key, key)] for key in ("P", "rewards", "gamma", "features", "initial", "values")}
    family = Chain(task)
    own = ictd.pretrain(seeds=[2, 5], task=family, **TINY)  # type: ignore[arg-type]
    file = ictd.pretrain(seeds=[2, 5], task=path, **TINY)  # type: ignore[arg-type]
    assert list(own) == list(file)
    # One task per epoch, one to measure it, and 300 at either end of each seed.
    training = sorted(asked for asked in family.asked if asked[1] < 2**32)
    assert training == [(0, 0)] + [(seed, index) for seed in (2, 5) for index in range(6)]
    # Without values they are solved for.
    del task["values"]
    solved = ictd.pretrain(seeds=[2, 5], task=Chain(task), **TINY)  # type: ignore[arg-type]
    assert [found["value_row"] for found in solved] == [found["value_row"] for found in own]
    assert solved[0]["msve"] == pytest.approx(own[0]["msve"], rel=1e-9)


@needs_binary
def test_training_asks_for_the_tasks_that_a_family_draws() -> None:
    """Epoch k of a seed trains on the task that ``ictd task --seed --index k`` makes."""

    class Boyan:
        def draw(self, seed: int, index: int) -> dict[str, object]:
            made = command("task", "boyan", "--states", "8", "--seed", seed, "--index", index, "--json")
            found = json.loads(made.stdout)
            return {"P": found["transitions"], "initial": found["initial_distribution"], **found}

    small = {"epochs": 2, "batch": 4, "n": 3}
    made: dict[tuple[int, int], dict[str, object]] = {}

    class Cheap(Boyan):
        """Measuring asks for 602 tasks, each a process here: one has to do for all."""

        def draw(self, seed: int, index: int) -> dict[str, object]:
            key = (seed, index % 2**32 if index < 2**32 else 0)
            if key not in made:
                made[key] = super().draw(*key)
            return made[key]

    own = ictd.pretrain(seeds=[4], task=Cheap(), **small)  # type: ignore[arg-type]
    family = ictd.pretrain(seeds=[4], task="boyan", states=8, **small)  # type: ignore[arg-type]
    np.testing.assert_array_equal(own.checkpoint(4).V, family.checkpoint(4).V)
    np.testing.assert_array_equal(own.checkpoint(4).A, family.checkpoint(4).A)


def test_own_families_do_not_depend_on_threads_and_come_back_from_files(tmp_path: Path) -> None:
    def train(**given: object) -> ictd.Run:
        return ictd.pretrain(seeds=3, task=Random(), **TINY, **given)  # type: ignore[arg-type]

    one = train(threads=1)
    assert list(one) == list(train(threads=4))
    assert one[0]["msve"] is not None
    kept = train(out=tmp_path)
    assert list(kept) == list(one) and "task=Random" in str(kept.directory)
    assert list(ictd.load_run(tmp_path)) == list(one)
    assert list(pickle.loads(pickle.dumps(one))) == list(one)
    # Another family of the same name is another run.
    other = ictd.pretrain(seeds=3, task=Random(states=5), out=tmp_path, **TINY)  # type: ignore[arg-type]
    assert other.directory != kept.directory


def test_what_draw_raises_comes_back_as_it_was() -> None:
    class Late(Random):
        def draw(self, seed: int, index: int) -> object:
            if index == 3:
                raise KeyError("no such task")
            return super().draw(seed, index)

    for threads in (1, 3):
        with pytest.raises(KeyError, match="no such task"):
            ictd.pretrain(seeds=4, task=Late(), threads=threads, **TINY)  # type: ignore[arg-type]

    class Never(Random):
        def draw(self, seed: int, index: int) -> object:
            raise RuntimeError("at once")

    with pytest.raises(RuntimeError, match="at once"):
        ictd.pretrain(seeds=1, task=Never(), **TINY)  # type: ignore[arg-type]


def task(**changes: object) -> dict[str, object]:
    usual: dict[str, object] = {"P": [[0.5, 0.5], [0.2, 0.8]], "rewards": [1, 0], "gamma": 0.5, "features": [[1.0], [2.0]], "initial": None}
    return {key: value for key, value in (usual | changes).items() if value is not ...}


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"P": ...}, InputTypeError, "draw returned dict without P"),
        ({"gamma": "x"}, InputTypeError, "gamma"),
        ({"gamma": 1.0}, InputError, "gamma is 1.0, expected 0 <= gamma < 1"),
        ({"P": [[0.5, 0.6], [0.2, 0.8]]}, InputError, "task 0 of seed 0: "),
        ({"rewards": [1, 0, 0]}, InputError, "entries"),
        ({"rewards": [1, float("nan")]}, InputError, "reward of state 1 is NaN"),
        ({"features": [[1.0]]}, InputError, "features"),
        ({"features": [1.0, 2.0]}, InputError, "features has shape"),
        ({"initial": [0.5, 0.6]}, InputError, "initial distribution"),
        ({"values": [0.0, 1.0]}, InputError, "Bellman"),
        ({"P": np.array(["a"])}, InputTypeError, "P"),
    ],
)
def test_tasks_that_are_none_are_refused(changes: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ictd.pretrain(seeds=1, task=Chain(task(**changes)), **TINY)  # type: ignore[arg-type]


def test_tasks_of_all_kinds_of_numbers_are_read() -> None:
    P = np.asfortranarray([[0.5, 0.5], [0.25, 0.75]]).astype(">f4")
    P.flags.writeable = False
    made = task(P=P, rewards=np.array([True, False]), features=np.array([[1], [2]], dtype=object))
    plain = task(P=P.tolist())
    assert list(ictd.pretrain(seeds=1, task=Chain(made), **TINY)) == list(ictd.pretrain(seeds=1, task=Chain(plain), **TINY))  # type: ignore[arg-type]


def test_keys_of_tasks_beside_a_family_are_refused() -> None:
    with pytest.raises(InputError, match="^task.gamma: 0.5 beside tasks of one's own"):
        ictd.pretrain(seeds=1, task=Random(), gamma=0.5)
    with pytest.raises(InputTypeError, match="task is a class, expected an object of it"):
        ictd.pretrain(seeds=1, task=Random)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="task"):
        ictd.pretrain(seeds=1, task="boyam")


def test_families_that_change_their_sizes_are_refused() -> None:
    class Growing(Random):
        def draw(self, seed: int, index: int) -> object:
            self.sizes = 6, 3 + (index == 2)
            return super().draw(seed, index)

    with pytest.raises(InputError, match="task 2 of seed 0 has 4 features and gamma 0.8, expected 3 and 0.8"):
        ictd.pretrain(seeds=1, task=Growing(), **TINY)  # type: ignore[arg-type]


def test_every_error_is_the_packages() -> None:
    assert all(issubclass(error, IctdError) for error in (InputError, InputTypeError, FileError, DivergedError))


def test_a_checkpoint_is_a_block(run: ictd.Run) -> None:
    blocks = pytest.importorskip("ictd.blocks")
    last = run.checkpoint(3)
    block = last.to_block()
    assert isinstance(block, blocks.Block) and block.layers == last.layers and block.kernel == last.kernel
    np.testing.assert_array_equal(block.V, last.V)
    np.testing.assert_array_equal(block.A, last.A)
