"""Logs as Arrow, and Minari data sets as Arrow and Parquet, made by pyarrow 26.0.1, pandas 3.1.1, polars 2.1.0, minari 0.5.4, gymnasium 1.4.0, h5py 3.16.0 and pillow (Minari needs it).

python make.py writes them beside itself. The values that the tests expect are those of CSV files that pyarrow writes from the same
tables, and of the HDF5 files that Minari writes of the same episodes.
"""

import gzip
import json
import os
import shutil
import tempfile
from decimal import Decimal

here = os.path.dirname(os.path.abspath(__file__))
os.environ["MINARI_DATASETS_PATH"] = tempfile.mkdtemp()

import gymnasium as gym
import minari
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet


def path(name):
    return os.path.join(here, name)


def write(name, table, **options):
    with pa.ipc.new_file(path(name), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as file:
        for batch in table.to_batches(max_chunksize=2):
            file.write_batch(batch)


# The arrays of flat.npz as pandas writes a frame: compressed with LZ4.
columns = {}
with np.load(path("../flat.npz")) as arrays:
    for name in arrays.files:
        columns[name] = arrays[name] if arrays[name].ndim == 1 else list(arrays[name])
pd.DataFrame(columns).to_feather(path("flat.feather"))

# Every kind of column, absent entries, batches of two rows.
kinds = pa.table({
    "episode": pa.array(["a", "a", "b", "b", "b"]).dictionary_encode(),
    "t": pa.array([0, 1, 0, 1, 2], pa.uint8()),
    "s_tiny": pa.array([1, -2, 3, 1, 4], pa.int8()),
    "s_short": pa.array([65535, 0, 1, 2, 3], pa.uint16()),
    "s_small": pa.array([1, -32768, 3, 1, 4], pa.int16()),
    "s_middle": pa.array([4294967295, 0, 1, 2, 3], pa.uint32()),
    "s_whole": pa.array([-2147483648, 0, 1, 2, 3], pa.int32()),
    "s_large": pa.array([2**63 - 1, 0, 1, 2, 3], pa.uint64()),
    "s_half": pa.array([0.5, -0.25, 65504, 1, 2], pa.float16()),
    "s_single": pa.array([0.1, 1.5, -2.5, 0.5, 1e10], pa.float32()),
    "s_double": pa.array([0.1, 1.5, -2.5, 0.5, 1e300]),
    "s_flag": pa.array([True, False, True, True, False]),
    "s_day": pa.array([1, 2, 3, 4, 5], pa.date32()),
    "s_moment": pa.array([1, 2, 3, 4, 5], pa.timestamp("us")),
    "reward": pa.array([1, 2, -3, 0, None], pa.int64()),
    "terminated": pa.array([False, True, False, False, None]),
    "note": pa.array(["é", None, None, "", "a text of more than twelve bytes"]),
    "none": pa.nulls(5),
})
views = kinds.set_column(16, "note", kinds["note"].cast(pa.string_view()))
large = kinds.set_column(16, "note", kinds["note"].cast(pa.large_string()))
write("kinds.arrow", kinds)
write("kinds-lz4.arrow", large, compression="lz4")
with pa.ipc.new_stream(path("kinds.arrows"), views.schema) as stream:
    stream.write_table(views, max_chunksize=3)
# polars has another layout of files, and of most texts.
polars.from_arrow(kinds).write_ipc(path("polars.arrow"))
# The same numbers as text; days and moments as the numbers that are kept.
plain = kinds.set_column(0, "episode", kinds["episode"].cast(pa.string()))
plain = plain.set_column(11, "s_flag", plain["s_flag"].cast(pa.int8()))
plain = plain.set_column(12, "s_day", plain["s_day"].cast(pa.int32()))
plain = plain.set_column(13, "s_moment", plain["s_moment"].cast(pa.int64()))
plain = plain.set_column(8, "s_half", plain["s_half"].cast(pa.float64()))
plain = plain.set_column(9, "s_single", plain["s_single"].cast(pa.float64()))
pa.csv.write_csv(plain, path("kinds.csv"))

# Lists and structures, some of them absent.
nested = pa.table({
    "episode": [1, 1, 1, 2, 2],
    "obs": pa.array([{"a": [1, 2], "b": 0.5}, {"a": [3, 4], "b": 1.5}, {"a": [5, None], "b": 2.5}, None, {"a": None, "b": 3.5}],
        pa.struct([("a", pa.list_(pa.int16())), ("b", pa.float64())])),
    "fixed": pa.array([[1, 2, 3], None, [4, 5, 6], [7, 8, 9], [0, 0, 0]], pa.list_(pa.float32(), 3)),
    "reward": [1.0, 2.0, 3.0, 4.0, 5.0],
    "terminated": [False, False, True, False, True],
})
write("nested.arrow", nested)
# A slice: entries of lists do not begin at the first.
write("slice.arrow", nested.slice(1, 2))
pa.parquet.write_table(nested, path("nested.parquet"), row_group_size=2)
pa.parquet.write_table(nested, path("nested-v2.parquet"), data_page_version="2.0", compression="lz4", use_dictionary=False)
pd.DataFrame({
    "episode": [1, 1, 1, 2, 2],
    "obs_a_0": ["1", "3", "5", "", ""],
    "obs_a_1": ["2", "4", "", "", ""],
    "obs_b": ["0.5", "1.5", "2.5", "", "3.5"],
    "fixed_0": [1, None, 4, 7, 0],
    "fixed_1": [2, None, 5, 8, 0],
    "fixed_2": [3, None, 6, 9, 0],
    "reward": nested["reward"].to_pylist(),
    "terminated": nested["terminated"].to_pylist(),
}).to_csv(path("nested.csv"), index=False)

# States that are asked for.
write("query.arrow", pa.table({"id": [1, 2, 3], "state": pa.array(["x", "y", "x"]).dictionary_encode()}))

# What is refused.
row = {"episode": ["a"], "state": ["x"], "reward": [1.0], "terminated": [True]}
write("zstd.arrow", pa.table(row), compression="zstd")
write("decimal.arrow", pa.table(row | {"reward": pa.array([Decimal("1.5")])}))
write("lists.arrow", pa.table(row | {"state": [[[1.0], [2.0]]]}))
pa.parquet.write_table(pa.table(row | {"state": [[[1.0], [2.0]]]}), path("lists.parquet"))
write("map.arrow", pa.table(row | {"state": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))}))
union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
write("union.arrow", pa.table(row | {"state": union}))
two = {name: entry * 2 for name, entry in row.items()}
write("ragged.arrow", pa.table(two | {"state": [[1.0, 2.0], [3.0]]}))
write("empty.arrow", pa.table(two | {"state": [[], [3.0]]}))
pa.parquet.write_table(pa.table(two | {"state": [[1.0, 2.0], [3.0]]}), path("ragged.parquet"))
write("bytes.arrow", pa.table(row | {"state": pa.array([b"\xe9t"])}))
with pa.OSFile(path("tensor.arrow"), "wb") as file:
    pa.ipc.write_tensor(pa.Tensor.from_numpy(np.zeros((2, 2))), file)


class Walk(gym.Env):
    """Five states in a row, shown as a space says; the walk ends at the right end."""

    action_space = gym.spaces.Box(-1, 1, (1,))

    def __init__(self, space, show):
        self.observation_space, self.show = space, show

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 2
        return self.show(self.state), {"note": "a", "place": np.zeros((2, 1))}

    def step(self, action):
        self.state = max(0, min(4, self.state + (1 if self.np_random.random() < 0.6 else -1)))
        info = {"note": "b", "place": np.ones((2, 1))}
        return self.show(self.state), -0.1 * self.state, self.state == 4, False, info


spaces = gym.spaces
SETS = {
    "box": (spaces.Box(-9, 9, (2,)), lambda s: np.array([s, s / 3], "f4")),
    "discrete": (spaces.Discrete(5), lambda s: s),
    # In another order than that of the names.
    "dict": (
        spaces.Dict([
            ("z", spaces.Box(-9, 9, (1, 2), np.float64)),
            ("a", spaces.Tuple((spaces.Discrete(5), spaces.Box(-9, 9, (), np.float16)))),
            ("bits", spaces.MultiBinary(3)),
            ("m", spaces.Dict({"y": spaces.MultiDiscrete([5, 3]), "x": spaces.Box(-9, 9, (1,), np.int16)})),
        ]),
        lambda s: {
            "z": np.array([[s / 7, s]]),
            "a": (s, np.array(s / 4, "f2")),
            "bits": np.array([s >> 2 & 1, s >> 1 & 1, s & 1], "i1"),
            "m": {"y": np.array([s, s % 3]), "x": np.array([-s], "i2")},
        },
    ),
    "text": (spaces.Text(4), lambda s: "abcde"[s] * (1 + s % 4)),
}
for name, (space, show) in SETS.items():
    for kept in ["hdf5", "arrow", "parquet"]:
        env = minari.DataCollector(gym.wrappers.TimeLimit(Walk(space, show), 5), record_infos=True, data_format=kept)
        env.action_space.seed(0)
        for seed in [1, 3]:
            env.reset(seed=seed)
            while not any(env.step(env.action_space.sample())[2:4]):
                pass
        env.create_dataset(f"{name}-{kept}-v0", algorithm_name="random", author="nobody", author_email="no@body")
        env.close()
        data = os.path.join(os.environ["MINARI_DATASETS_PATH"], f"{name}-{kept}-v0", "data")
        target = path(f"minari/{name}-{kept}")
        shutil.rmtree(target, ignore_errors=True)
        if kept != "hdf5":
            shutil.copytree(data, os.path.join(target, "data"))
            continue
        os.makedirs(target)
        shutil.copy(os.path.join(data, "metadata.json"), target)
        with open(os.path.join(data, "main_data.hdf5"), "rb") as file:
            content = gzip.compress(file.read(), mtime=0)
        with open(os.path.join(target, "main_data.hdf5.gz"), "wb") as file:
            file.write(content)
    ends = [(bool(e.terminations[-1]), len(e.rewards)) for e in minari.load_dataset(f"{name}-hdf5-v0")]
    print(name, json.dumps(ends))
shutil.rmtree(os.environ["MINARI_DATASETS_PATH"])
