"""Logs as Parquet, made by pyarrow 26.0.1 and pandas 3.1.1: python make.py writes them beside itself."""

import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

here = os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.join(here, f"{name}.parquet")


# The arrays of flat.npz as pandas writes a frame: compressed with Snappy, with dictionaries.
columns = {}
with np.load(os.path.join(here, "../flat.npz")) as arrays:
    for name in arrays.files:
        array = arrays[name]
        lanes = [(name, array)] if array.ndim == 1 else [(f"{name}_{k}", array[:, k]) for k in range(array.shape[1])]
        columns.update(lanes)
frame = pd.DataFrame(columns)
# An index that is no range is kept as a column.
frame.index = frame.index[::-1]
frame.to_parquet(path("flat"))

# Every kind of column, absent entries, several groups of rows.
kinds = pa.table({
    "episode": pa.array(["a", "a", "b", "b", "b"]).dictionary_encode(),
    "t": pa.array([0, 1, 0, 1, 2], pa.uint8()),
    "s_small": pa.array([1, -2, 3, 1, 4], pa.int8()),
    "s_large": pa.array([2**32 - 1, 0, 1, 2, 3], pa.uint32()),
    "s_single": pa.array([0.5, 1.5, -2.5, 0.5, 1e10], pa.float32()),
    "s_flag": pa.array([True, False, True, True, False]),
    "reward": pa.array([1, 2, -3, 0, None], pa.int64()),
    "terminated": pa.array([False, True, False, False, None]),
    "note": pa.array(["é", None, None, "", "x"]),
})
pq.write_table(kinds, path("kinds"), compression="gzip", data_page_version="2.0", row_group_size=2)
pq.write_table(kinds, path("old"), compression="none", version="1.0", use_dictionary=False, row_group_size=4)

# What is refused.
row = {"episode": ["a"], "state": ["x"], "reward": [1.0], "terminated": [True]}
pq.write_table(pa.table(row), path("zstd"), compression="zstd")
pq.write_table(pa.table(row | {"reward": pa.array([Decimal("1.5")])}), path("decimal"))
pq.write_table(pa.table(row | {"state": [[1.0, 2.0]]}), path("list"))
pq.write_table(pa.table(row), path("delta"), use_dictionary=False, column_encoding={"state": "DELTA_BYTE_ARRAY"})
