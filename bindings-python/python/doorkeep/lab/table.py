"""Columns of a result: a mapping of NumPy arrays that prints as text and as HTML.

Knows columns only by their unit: names that end in `_s` are seconds. Invariant: arrays are read-only, so that a plot
cannot change a result. Tested in `tests/python/test_lab.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from doorkeep.lab._extras import needed
from doorkeep.lab.text import html, shown, text

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    from numpy.typing import ArrayLike, NDArray
else:
    np = needed("numpy", "a run of doorkeep.lab", "doorkeep[lab]")

__all__ = ["Table"]


class Table(Mapping[str, "NDArray[Any]"]):
    """Columns of one length by name, in a fixed order.

    Numbers are float64, NaN for missing values; `kind` has strings. `rows` is their length.
    """

    def __init__(self, columns: Mapping[str, ArrayLike]) -> None:
        self._columns = {name: np.array(column) for name, column in columns.items()}
        for column in self._columns.values():
            column.setflags(write=False)

    @classmethod
    def of(cls, columns: Mapping[str, bytes | list[str]]) -> Table:
        """Make a table from the columns of the native module."""
        return cls(
            {
                name: np.frombuffer(column) if isinstance(column, bytes) else np.array(column, dtype=np.str_)
                for name, column in columns.items()
            }
        )

    def __reduce__(self) -> tuple[type[Table], tuple[dict[str, NDArray[Any]]]]:
        return Table, (self._columns,)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return next((len(column) for column in self._columns.values()), 0)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame; ImportError if pandas is not installed."""
        frame: pd.DataFrame = needed("pandas", "to_pandas", "pandas").DataFrame(dict(self._columns))
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame; ImportError if polars is not installed."""
        columns = {name: column.tolist() if column.dtype.kind == "U" else column for name, column in self.items()}
        frame: pl.DataFrame = needed("polars", "to_polars", "polars").DataFrame(columns)
        return frame

    def to_lists(self) -> dict[str, list[Any]]:
        """Return plain lists with `None` for NaN, as for JSON and CSV."""
        return {name: [_or_none(value) for value in column.tolist()] for name, column in self.items()}

    def __str__(self) -> str:
        return text([list(self), *self._cells()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html([list(self), *self._cells()])

    def _cells(self) -> list[list[str]]:
        return [[shown(name, self[name][row]) for name in self] for row in range(self.rows)]


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
