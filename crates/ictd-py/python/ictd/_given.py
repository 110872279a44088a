"""What callers give as Python values, as the library reads it: seeds, keys and their values, tables."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TypeAlias

import numpy as np

from ictd.errors import InputError, InputTypeError

__all__ = ["Path", "Seeds", "assignments", "seeds_text", "toml"]

Path: TypeAlias = "str | os.PathLike[str]"
Seeds: TypeAlias = "int | str | range | Iterable[int]"

_BARE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def seeds_text(seeds: Seeds) -> str:
    """Seeds as the command line reads them: ``5`` is 0 to 4, a list of one seed is that seed.

    >>> seeds_text(5), seeds_text([7]), seeds_text(range(3, 6)), seeds_text("0..5,10")
    ('5', '7..8', '3..6', '0..5,10')
    """
    if isinstance(seeds, str):
        return seeds
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        return str(seeds)
    if isinstance(seeds, range) and seeds.step == 1 and len(seeds) > 0:
        return f"{seeds.start}..{seeds.stop}"
    if not isinstance(seeds, Iterable) or isinstance(seeds, (bytes, Mapping)):
        raise InputTypeError(f"seeds is a {type(seeds).__name__}, expected a number of seeds, a range, a list or a text like '0..5'")
    numbers = []
    # The library refuses more than a million.
    for seed in islice(seeds, 1_000_001):
        if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)):
            raise InputTypeError(f"seeds has a {type(seed).__name__}, expected whole numbers")
        numbers.append(int(seed))
    if len(numbers) == 1:
        return f"{numbers[0]}..{numbers[0] + 1}"
    return ",".join(map(str, numbers))


def _word(name: str, value: object) -> str:
    """A value as it is typed after ``--set key=``."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if set(value) & set('\n\r"#') else value
    raise InputTypeError(f"{name} is a {type(value).__name__}, expected a number, a truth value or a word")


def assignments(given: Mapping[str, object] | Iterable[str] | None, named: Mapping[str, object]) -> list[str]:
    """Changes of a configuration as ``key=value``: those of a dictionary or a list of such texts, then keywords, in which two
    underscores stand for a dot.

    >>> assignments({"optimizer.lr": 3e-4}, {"init__gain": 1, "query": "source"})
    ['optimizer.lr=0.0003', 'init.gain=1', 'query=source']
    """
    changes: list[str] = []
    if isinstance(given, Mapping):
        changes += [f"{key}={_word(str(key), value)}" for key, value in given.items()]
    elif isinstance(given, str):
        changes.append(given)
    elif given is not None:
        if not isinstance(given, Iterable):
            raise InputTypeError(f"set is a {type(given).__name__}, expected a dictionary of keys and values, or texts 'key=value'")
        for change in given:
            if not isinstance(change, str):
                raise InputTypeError(f"set has a {type(change).__name__}, expected texts 'key=value'")
            changes.append(change)
    for name, value in named.items():
        key = name.replace("__", ".")
        changes.append(f"{key}={_word(key, value)}")
    return changes


def toml(table: Mapping[str, object], dotted: bool) -> str:
    """A dictionary as TOML, in its order; ``dotted`` says whether dots in keys are levels."""
    try:
        return "".join(f"{_key(key, dotted)} = {_value(str(key), value, dotted)}\n" for key, value in table.items())
    except RecursionError:
        raise InputError("the dictionary is in itself, or too deep, expected tables of some levels") from None


def _key(key: object, dotted: bool) -> str:
    if not isinstance(key, str):
        raise InputTypeError(f"a key is a {type(key).__name__}, expected a text")
    is_plain = _BARE.fullmatch(key) is not None and (dotted or "." not in key)
    return key if is_plain else json.dumps(key, ensure_ascii=False)


def _value(name: str, value: object, dotted: bool) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key, dotted)} = {_value(f'{name}.{key}', entry, dotted)}" for key, entry in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple, range)):
        return f"[{', '.join(_value(name, entry, dotted) for entry in value)}]"
    if isinstance(value, str) or isinstance(value, os.PathLike):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and abs(int(value)) >= 2**63:
        raise InputError(f"{name} is {value}, expected a number of at most 63 bits")
    return _word(name, value)
