"""Rows as lines of text, with their cells below each other; the last one is as long as it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[str, ...]


def widths(table: Sequence[Row]) -> list[int]:
    return [max(len(row[column]) for row in table) for column in range(len(table[0]) - 1)]


def columns(row: Row, sizes: list[int]) -> str:
    cells = [f"{text:<{size}}" for text, size in zip(row, sizes, strict=False)]
    return "  ".join([*cells, row[-1]]).rstrip()
