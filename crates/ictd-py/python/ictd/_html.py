"""Tables and figures for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Protocol

__all__ = ["figures", "page", "table"]

_STYLE = (
    "<style>.ictd table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".ictd td,.ictd th{padding:.15em .6em;text-align:right;border:0;border-bottom:1px solid #8884}"
    ".ictd td.w,.ictd th.w{text-align:left}.ictd svg{max-width:100%;height:auto}</style>"
)


class _Drawn(Protocol):
    def svg(self) -> str: ...


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "unknown" if value != value else f"{value:.3f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.2e}"
    return "unknown" if value is None else str(value)


def table(header: Sequence[str], rows: Iterable[Sequence[object]], most: int = 60) -> str:
    """A table; words to the left, numbers to the right and rounded. Rows behind so many are counted."""
    body = list(rows)
    shown = body[:most]
    words = [any(isinstance(row[k], str) for row in shown) for k in range(len(header))]
    kind = ["<{} class=w>" if word else "<{}>" for word in words]
    head = "".join(f"{kind[k].format('th')}{escape(name)}</th>" for k, name in enumerate(header))
    lines = ["".join(f"{kind[k].format('td')}{escape(_cell(cell))}</td>" for k, cell in enumerate(row)) for row in shown]
    more = f"<p>and {len(body) - most} more</p>" if len(body) > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>{more}"


def figures(drawn: Iterable[_Drawn]) -> str:
    """Figures one below the other."""
    return "".join(f"<div>{figure.svg()}</div>" for figure in drawn)


def page(*parts: str) -> str:
    """Parts of what a result shows, in the package's looks."""
    return f"<div class=ictd>{_STYLE}{''.join(parts)}</div>"
