"""Cells of a trace as numbers, and which rows cannot be used: millions of them, in arrays and a chunk at a time."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from planner.simulate.trace_rows import EXCESS, NO_OBJECT, Chunk

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MOST_TOKENS = 10_000_000
YEARS_10_S = 10 * 365.25 * 86_400
NO_ARRIVAL = "no arrival"
_NOT_A_NUMBER, _NEGATIVE, _NO_TOKENS = "not a number", "negative tokens", "no tokens"
_NOT_WHOLE, _TOO_MANY = "not whole tokens", f"more than {MOST_TOKENS:,} tokens"
_BEFORE_0, _TOO_FAR = "negative arrival", "arrival beyond 10 years"
REMEDIES = {
    EXCESS: "give every row as many cells as there are columns; numbers have no commas in them",
    NO_OBJECT: "write one request a line, as {...}",
    _NOT_A_NUMBER: "tokens are plain numbers, such as 1200; arrivals are too, or dates with times",
    _NEGATIVE: "tokens are counts from 1",
    _NO_TOKENS: "a request has at least one input token and one output token",
    _NOT_WHOLE: "tokens are whole numbers",
    _TOO_MANY: "are these tokens, and not bytes or times?",
    _BEFORE_0: "arrivals are seconds from the first request, or dates with times",
    _TOO_FAR: "arrivals of one trace lie within 10 years; are they in the unit of their column?",
    NO_ARRIVAL: "give every row its arrival, or leave all of them blank to keep lengths alone",
}
"""Why rows are left out, the first that holds for a row, and what to do about it."""
_REASONS = tuple(REMEDIES)
BLOCK_TOKENS = (512, 16, 32, 64, 128, 256, 1024, 2048, 4096)
"""Tokens a block of `hash_ids` may have: those of Mooncake, of Bailian, and of engines that write such traces."""
_LEAST_FIT = 0.9  # of the rows whose blocks a size has to explain


class Columns:
    """Takes rows in chunks and keeps those that can be used; counts the others and remembers their first lines."""

    def __init__(self, per_s: float) -> None:
        self.rows = 0
        self.skipped: dict[str, int] = {}
        self.skipped_at: dict[str, int] = {}
        self.notes: list[str] = []
        self._times = _Times(per_s)
        self._arrivals, self._inputs, self._outputs, self._hits = array("d"), array("q"), array("q"), array("q")
        self._blocks = _Blocks()
        self._states_hits = False
        self._unstated_hits = 0
        self._unplaced = 0
        self._unplaced_at = 0

    @property
    def first(self) -> tuple[str, int] | None:
        """Reason and line of the first row that was left out, None when all were kept."""
        return min(self.skipped_at.items(), key=lambda item: item[1], default=None)

    def take(self, chunk: Chunk) -> None:
        """Add rows."""
        self.rows += len(chunk.lines)
        arrivals, inputs, outputs = self._times.read(chunk.arrivals), numbers(chunk.inputs), numbers(chunk.outputs)
        hits = np.full(len(chunk.lines), np.nan) if chunk.hits is None else numbers(chunk.hits)
        reasons = self._reasons(chunk, arrivals, inputs, outputs, hits)
        if reasons.any():
            self._count(reasons, chunk.lines)
        keep = reasons == 0
        arrivals, inputs, hits = arrivals[keep], inputs[keep], hits[keep]
        self._note_unplaced(np.isnan(arrivals), keep, chunk.lines)
        hits = self._hits_of(chunk, keep, inputs, hits)
        self._unstated_hits += int(np.count_nonzero(np.isnan(hits)))
        self._arrivals.frombytes(arrivals.tobytes())
        for kept, values in ((self._inputs, inputs), (self._outputs, outputs[keep]), (self._hits, np.nan_to_num(hits))):
            kept.frombytes(values.astype(np.int64).tobytes())

    def finish(self) -> tuple[Floats | None, Integers, Integers, Integers | None]:
        """Return arrivals (not sorted, None when all are blank), input, output and hit tokens (None when not stated)."""
        arrivals = np.frombuffer(self._arrivals, np.float64)
        inputs, outputs = np.frombuffer(self._inputs, np.int64), np.frombuffer(self._outputs, np.int64)
        hits = self._hit_tokens(inputs)
        if self._unplaced == arrivals.size:
            return None, inputs, outputs, hits
        if self._unplaced:
            self.skipped[NO_ARRIVAL], self.skipped_at[NO_ARRIVAL] = self._unplaced, self._unplaced_at
            placed = ~np.isnan(arrivals)
            arrivals, inputs, outputs = arrivals[placed], inputs[placed], outputs[placed]
            hits = None if hits is None else hits[placed]
        return arrivals, inputs, outputs, hits

    def _reasons(self, chunk: Chunk, arrivals: Floats, inputs: Floats, outputs: Floats, hits: Floats) -> Integers:
        """Return by row why it is left out: 0 when it is not, else one more than the place among `_REASONS`."""
        both = np.stack((inputs, outputs))
        refused = np.zeros((2, len(chunk.lines)), bool)
        for place, reason in chunk.refused.items():
            refused[_REASONS.index(reason), place] = True
        held: dict[str, npt.NDArray[np.bool_]] = {
            EXCESS: refused[0],
            NO_OBJECT: refused[1],
            _NOT_A_NUMBER: np.isinf(both).any(0) | np.isinf(arrivals) | np.isinf(hits),
            _NEGATIVE: (both < 0.0).any(0) | (hits < 0.0),
            _NO_TOKENS: ~((inputs > 0.0) & (outputs > 0.0)),
            _NOT_WHOLE: (both != np.floor(both)).any(0) | (hits > np.floor(hits)),
            _TOO_MANY: (both > MOST_TOKENS).any(0) | (hits > MOST_TOKENS),
            _BEFORE_0: np.logical_and(arrivals < 0.0, not self._times.are_dates),
            _TOO_FAR: np.abs(arrivals - self._times.usual(arrivals)) > YEARS_10_S,
        }
        codes = [1 + _REASONS.index(reason) for reason in held]
        return np.select(list(held.values()), codes, 0).astype(np.int64)

    def _count(self, reasons: Integers, lines: Sequence[int]) -> None:
        for code in np.unique(reasons[reasons > 0]):
            reason, found = _REASONS[code - 1], reasons == code
            self.skipped[reason] = self.skipped.get(reason, 0) + int(np.count_nonzero(found))
            self.skipped_at.setdefault(reason, lines[int(np.argmax(found))])

    def _note_unplaced(self, blank: npt.NDArray[np.bool_], keep: npt.NDArray[np.bool_], lines: Sequence[int]) -> None:
        """Count rows without an arrival: whether they are left out depends on the whole file."""
        count = int(np.count_nonzero(blank))
        if count and not self._unplaced:
            self._unplaced_at = lines[int(np.flatnonzero(keep)[np.argmax(blank)])]
        self._unplaced += count

    def _hits_of(self, chunk: Chunk, keep: npt.NDArray[np.bool_], inputs: Floats, hits: Floats) -> Floats:
        """Return hits as stated, else as leading blocks that are known: one of them in all of a file."""
        if not self._blocks.rows and not np.isnan(hits).all():
            self._states_hits = True
        elif chunk.hash_ids is not None and not self._states_hits:
            return self._blocks.leading(chunk.hash_ids, keep, inputs)
        return hits if self._states_hits else np.full(inputs.size, np.nan)

    def _hit_tokens(self, inputs: Integers) -> Integers | None:
        hits: Integers = np.frombuffer(self._hits, np.int64)
        if not self._states_hits:
            size = self._blocks.size(self.notes)
            if size is None:
                return None
            hits = hits * size
        if self._unstated_hits:
            self.notes.append(f"cached tokens are blank in {counted(self._unstated_hits, 'row')}; none are taken there")
        whole = int(np.count_nonzero(hits >= inputs))
        if whole:
            self.notes.append(f"{counted(whole, 'prompt')} cached as a whole: the last token is computed all the same")
        return np.minimum(hits, inputs - 1)


class _Times:
    """Arrivals in seconds: numbers in the unit of their column, or dates with times, whichever comes first in a file."""

    def __init__(self, per_s: float) -> None:
        self.are_dates = False
        self._per_s = per_s
        self._origin: datetime | None = None
        self._usual: float | None = None

    def read(self, cells: Sequence[object]) -> Floats:
        """Return seconds from some time: NaN for a blank cell, infinity for one that holds no time."""
        if self.are_dates:
            return np.fromiter(map(self._seconds, cells), np.float64, len(cells))
        values = numbers(cells)
        if self._usual is None and np.isinf(values).sum() > np.isfinite(values).sum():
            self._origin = next((date for date in map(_date, cells) if date is not None), None)
            self.are_dates = self._origin is not None
            if self.are_dates:
                return self.read(cells)
        return values / self._per_s

    def usual(self, arrivals: Floats) -> float:
        """Return a time around which the arrivals of a file lie: the median of the first rows that have any."""
        if self._usual is None:
            times = arrivals[np.isfinite(arrivals)]
            self._usual = float(np.median(times)) if times.size else None
        return self._usual or 0.0

    def _seconds(self, cell: object) -> float:
        date = _date(cell)
        if date is None or self._origin is None:
            return np.nan if _is_blank(cell) else np.inf
        return (date - self._origin).total_seconds()


class _Blocks:
    """Blocks of prompts that were seen: how many at the head of a prompt an earlier one had too, and how long they are."""

    def __init__(self) -> None:
        self._seen: set[object] = set()
        self.rows = 0
        self._fits = np.zeros(len(BLOCK_TOKENS), np.int64)

    def leading(self, cells: Sequence[object], keep: npt.NDArray[np.bool_], inputs: Floats) -> Floats:
        """Return of each kept row how many leading blocks are known, NaN where it names none."""
        lists = [_ids(cells[place]) for place in np.flatnonzero(keep).tolist()]
        counts = np.array([len(ids) for ids in lists], np.float64)
        named = counts > 0
        self.rows += int(np.count_nonzero(named))
        for place, size in enumerate(BLOCK_TOKENS):
            self._fits[place] += np.count_nonzero(np.ceil(inputs / size)[named] == counts[named])
        return np.array([self._known(ids) if ids else np.nan for ids in lists], np.float64)

    def size(self, notes: list[str]) -> int | None:
        """Return the tokens a block that the counts of blocks agree with; None where there are no blocks, or no size fits."""
        best = int(np.argmax(self._fits))
        if not self.rows:
            return None
        if self._fits[best] < _LEAST_FIT * self.rows:
            notes.append("the counts of `hash_ids` fit no size of blocks, so cached tokens are not known")
            return None
        if best:
            notes.append(f"blocks of `hash_ids` have {BLOCK_TOKENS[best]} tokens, by their counts")
        return BLOCK_TOKENS[best]

    def _known(self, ids: list[object]) -> int:
        known = next((place for place, block in enumerate(ids) if block not in self._seen), len(ids))
        self._seen.update(ids)
        return known


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `2,000 rows`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def numbers(cells: Sequence[object]) -> Floats:
    """Return cells as numbers: NaN for a blank cell, infinity for one that holds no finite number."""
    kinds = set(map(type, cells))
    if (kinds <= {str} and not any(cells)) or kinds <= {type(None)}:
        return np.full(len(cells), np.nan)
    if bool not in kinds:
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))  # type: ignore[arg-type]
        except (ValueError, TypeError, OverflowError):
            pass  # some cell is blank or no number: look at each
        else:
            values[~np.isfinite(values)] = np.inf
            return values
    return np.fromiter(map(_number, cells), np.float64, len(cells))


def _number(cell: object) -> float:
    if _is_blank(cell):
        return np.nan
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return np.inf
    try:
        value = float(cell)
    except (ValueError, OverflowError):
        return np.inf
    return value if np.isfinite(value) else np.inf


def _is_blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _date(cell: object) -> datetime | None:
    """Return the time in a cell, taken as UTC where it states no zone; None where it holds none."""
    if not isinstance(cell, str):
        return None
    try:
        date = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _ids(cell: object) -> list[object]:
    """Return the blocks of a prompt, from a list or its text; none where a cell holds no list of plain values."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return []
    return cell if isinstance(cell, list) and _are_plain(cell) else []


def _are_plain(values: Iterable[object]) -> bool:
    return set(map(type, values)) <= {int, str}
