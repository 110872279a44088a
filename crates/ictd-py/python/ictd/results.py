"""Results of studies: dictionaries that show themselves."""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import re
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd.errors import InputError

__all__ = ["Figure", "Result"]

Column = npt.NDArray[Any]


class Figure:
    """A figure of a result. In a notebook it shows itself; :meth:`save` writes SVG, PDF or PNG by the name's ending.

    >>> import ictd
    >>> figure = next(iter(ictd.msve(tasks=3).figures.values()))
    >>> figure, figure.svg().startswith("<svg")
    (<figure fig1>, True)
    """

    def __init__(self, report: _core.Report, name: str) -> None:
        self._report = report
        self.name = name

    def svg(self) -> str:
        """The figure as SVG."""
        return self._report.svg(self.name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the figure as ``.svg``, ``.pdf`` or ``.png``."""
        ending = os.fspath(path).rpartition(".")[2].lower()
        made = {"svg": lambda: self.svg().encode(), "pdf": lambda: self._report.pdf(self.name), "png": lambda: self._report.png(self.name)}
        if ending not in made:
            raise InputError(f"figure is to be written to '{os.fspath(path)}', expected a name that ends in .svg, .pdf or .png")
        content = made[ending]()
        with open(path, "wb") as file:
            file.write(content)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<figure {self.name}>"


class Result(dict[str, Any]):
    """What a study found: the keys of the command line's ``--json``, with its text, figures and tables.

    Where the JSON of the command is a list, as of several settings at once, it is the value of the key ``"results"``. Copies show
    themselves too; a pickle keeps the numbers alone, and is read as a plain dictionary.

    >>> import ictd
    >>> found = ictd.verify(trials=3)
    >>> found.holds, isinstance(found, dict), "rounding level" in found.text()
    (True, True, True)
    """

    def __init__(self, report: _core.Report) -> None:
        found = json.loads(report.json())
        super().__init__(found if isinstance(found, dict) else {"results": found})
        self._report = report

    def __getattr__(self, name: str) -> Any:
        if name != "_report":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        raise InputError("this result was pickled, which keeps its numbers alone, expected the one that was pickled for text, figures and tables")

    def text(self, width: int = 100) -> str:
        """What the command line prints, in lines of at most ``width`` characters."""
        return self._report.text(width)

    @property
    def holds(self) -> bool:
        """Whether what was checked holds; true where nothing was."""
        return self._report.holds()

    @property
    def figures(self) -> dict[str, Figure]:
        """Figures by name."""
        return {name: Figure(self._report, name) for name in self._report.figure_names()}

    @property
    def tables(self) -> dict[str, dict[str, Column]]:
        """Tables by name, each a dictionary of columns; ``pandas.DataFrame(table)`` takes it as it is."""
        return {name: columns(text) for name, text in self._report.tables()}

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes tables, figures and JSON to a directory, as ``--out`` does."""
        self._report.write(os.fspath(directory))

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from html import escape

        pictures = "".join(figure.svg() for figure in self.figures.values())
        return f"<pre>{escape(self.text())}</pre>{pictures}"

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        dict.update(new, self)
        new.__dict__.update(self.__dict__)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = self.__copy__()
        dict.update(new, copy.deepcopy(dict(self), memo))
        # What shows itself never changes: copies share it.
        others = {name: value for name, value in self.__dict__.items() if name != "_report"}
        new.__dict__.update(copy.deepcopy(others, memo))
        return new

    def __reduce__(self) -> tuple[Any, ...]:
        # What shows itself is the library's own: elsewhere the numbers are what there is.
        return (dict, (dict(self),))


def columns(text: str) -> dict[str, Column]:
    """The columns of a CSV text: numbers where all cells are numbers or empty (NaN), texts elsewhere."""
    rows = list(csv.reader(io.StringIO(text)))
    header, body = rows[0], rows[1:]
    return {name: column([row[k] for row in body]) for k, name in enumerate(header)}


#: What Python reads as a number and is a name: texts with leading zeros or underscores.
_NAME = re.compile(r"[+-]?0[0-9]|.*_")


def column(cells: list[str]) -> Column:
    """Whole numbers, numbers, truth values or texts, whichever all cells are."""
    if not cells:
        return np.array([], dtype=np.float64)
    if all(cell in ("true", "false") for cell in cells):
        return np.array([cell == "true" for cell in cells])
    if any(_NAME.match(cell) for cell in cells):
        return np.array(cells)
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)
