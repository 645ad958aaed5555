"""Read a trace of requests: when they arrived, and how many tokens they had. Nothing of their text is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from planner.simulate.trace_columns import REMEDIES, Columns, counted
from planner.simulate.trace_rows import EXPECTED, read_chunks
from planner.simulate.trace_text import TraceText, refused

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests in order of arrival, in columns of equal length that cannot be written to.

    `arrival_s` are seconds from the first request, None where the file has lengths alone. The first `hit_tokens` of a
    prompt (fewer than `input_tokens`) were cached; None where the file does not say. `rows` counts all rows of the file
    that are not blank, `skipped` those left out, by reason, and `skipped_at` gives the first line of each reason. `notes`
    say what was changed or assumed. `sha256` is that of the file as it lies on the disk, packed where it is packed.
    """

    path: str
    sha256: str
    rows: int
    arrival_s: Floats | None
    input_tokens: Integers
    output_tokens: Integers
    hit_tokens: Integers | None
    skipped: Mapping[str, int]
    notes: tuple[str, ...]
    skipped_at: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_arrivals(self) -> bool:
        """Tell whether it says when requests came."""
        return self.arrival_s is not None

    @property
    def duration_s(self) -> float:
        """Seconds from the first arrival to the last, 0 without arrivals."""
        return 0.0 if self.arrival_s is None else float(self.arrival_s[-1])

    @property
    def requests_per_s(self) -> float:
        """Mean rate: one over the mean gap between arrivals, 0 without arrivals."""
        return (self.input_tokens.size - 1) / self.duration_s if self.has_arrivals else 0.0


def read_trace(path: Path) -> Trace:
    """Read a trace: CSV, or JSON with one object a line, as it is or packed with gzip; told apart by what is in it.

    Columns are those of the planner (`arrival_s`, `input_tokens`, `output_tokens`, `prefix_hit_tokens`), or as Azure, Mooncake,
    Qwen-Bailian, BurstGPT or Vidur name them. Rows that cannot be used are left out and counted. Memory is that of the columns,
    and of the distinct blocks where a file has `hash_ids`.

    Raises `DiagnosticError` when the file cannot be read, is no text or no trace, when more than half of its rows cannot be
    used, or when all arrivals are at one time, which tell no rate.
    """
    text = TraceText(str(path))
    layout, chunks = read_chunks(text)
    columns = Columns(layout.per_s)
    for chunk in chunks:
        columns.take(chunk)
    arrivals, inputs, outputs, hits = columns.finish()
    _check_usable(text.path, columns)
    if arrivals is not None:
        arrivals, order = _from_first(text.path, arrivals, columns.notes)
        if order is not None:
            inputs, outputs = inputs[order], outputs[order]
            hits = None if hits is None else hits[order]
    if columns.first is not None:
        reason, line = columns.first
        columns.notes.append(f"the first row that was left out is {text.path}:{line} ({reason})")
    for column in (arrivals, inputs, outputs, hits):
        if column is not None:
            column.setflags(write=False)
    skipped, skipped_at = MappingProxyType(columns.skipped), MappingProxyType(columns.skipped_at)
    notes = tuple(columns.notes)
    return Trace(text.path, text.sha256, columns.rows, arrivals, inputs, outputs, hits, skipped, notes, skipped_at)


def _check_usable(path: str, columns: Columns) -> None:
    """Raise `DiagnosticError` for a file without rows, or with too few that can be used."""
    if not columns.rows:
        raise refused(path, "the table has no rows below its columns", help=EXPECTED)
    left_out = sum(columns.skipped.values())
    if left_out * 2 <= columns.rows:
        return
    reason = max(columns.skipped, key=lambda reason: columns.skipped[reason])
    count, line = columns.skipped[reason], columns.skipped_at[reason]
    share = f"{left_out:,} of {columns.rows:,} rows cannot be used"
    message = f"{share}; {count:,} of them for: {reason}, the first in {path}:{line}"
    raise refused(path, message, line, REMEDIES[reason])


def _from_first(path: str, arrivals: Floats, notes: list[str]) -> tuple[Floats, Integers | None]:
    """Return arrivals in order as seconds from the first, and which rows they are of unless they were in order."""
    least, most = float(arrivals.min()), float(arrivals.max())
    if least == most:
        many = f"all arrivals ({arrivals.size:,}) are at the same time, so they tell no rate"
        message = many if arrivals.size > 1 else "one arrival alone tells no rate"
        raise refused(path, message, help="give two or more times, or leave them blank to keep lengths alone")
    late = int(np.count_nonzero(arrivals < np.maximum.accumulate(arrivals)))
    order = None
    if late:
        order = np.argsort(arrivals, kind="stable")
        arrivals = arrivals[order]
        were = "was" if late == 1 else "were"
        notes.append(f"{counted(late, 'arrival')} {were} out of order and {were} sorted")
    arrivals -= least  # in place: a copy of a column of millions is not needed
    return arrivals, order
