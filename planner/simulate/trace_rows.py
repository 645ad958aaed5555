"""Rows of a trace as columns of cells: which columns a file has, and its rows in chunks, from CSV or lines of JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import methodcaller

from planner.catalog.canonical import tidy
from planner.simulate.trace_text import Block, TraceText, refused
from planner.source.nearest import nearest

CHUNK_ROWS = 32_768
LONGEST_CELL = 20_000
"""Characters; as for tables of measurements, whose limit the parser of the standard library shares."""
SEPARATORS = {";": "`;`", "\t": "tabs", "|": "`|`"}
EXCESS = "more cells than columns"
NO_OBJECT = "not a JSON object"
_DECODE = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Layout:
    """Names that one kind of trace has for its columns; numbers of arrivals count `per_s` to the second.

    A layout with a `mark` is only meant where that column is there too. `hits` are tokens, `hash_ids` the blocks of a prompt.
    """

    origin: str
    arrival: str
    inputs: str
    outputs: str
    hits: str = "prefix_hit_tokens"
    hash_ids: str = "hash_ids"
    per_s: float = 1.0
    mark: str = ""

    @property
    def names(self) -> tuple[str, str, str]:
        """Its columns: arrival, input and output."""
        return (self.arrival, self.inputs, self.outputs)

    @property
    def read(self) -> frozenset[str]:
        """All columns that are read where they are there."""
        return frozenset((*self.names, self.hits, self.hash_ids))

    def lacks(self, columns: Sequence[str]) -> list[str]:
        """Return which of its columns are not there."""
        return [name for name in self.names if name not in columns]


LAYOUTS = (
    Layout("the planner", "arrival_s", "input_tokens", "output_tokens"),
    Layout("Azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    Layout("BurstGPT", "Timestamp", "Request tokens", "Response tokens"),
    Layout("Qwen-Bailian", "timestamp", "input_length", "output_length", mark="chat_id"),
    Layout("Mooncake", "timestamp", "input_length", "output_length", per_s=1000.0),
    Layout("Vidur", "arrived_at", "num_prefill_tokens", "num_decode_tokens"),
)
"""Kinds of traces that are read, the first that fits. Bailian's names are Mooncake's, its time is in seconds."""
_BESIDE = frozenset({"prefix_group", "prefix_hit_tokens", "hash_ids", "NumImages"})
"""Columns that hold no arrivals, so that a file with these and lengths alone has none."""
EXPECTED = "columns of a trace: " + "; or of ".join(
    ", ".join(x.names) if x is LAYOUTS[0] else f"{x.origin}: {', '.join(x.names)}" for x in LAYOUTS if not x.mark
)


@dataclass
class Chunk:
    """Some rows, column by column: text of CSV, or values of JSON. `refused` says by position why a row is no row."""

    lines: Sequence[int]
    arrivals: Sequence[object]
    inputs: Sequence[object]
    outputs: Sequence[object]
    hits: Sequence[object] | None
    hash_ids: Sequence[object] | None
    refused: dict[int, str] = field(default_factory=dict)


def read_chunks(text: TraceText) -> tuple[Layout, Iterator[Chunk]]:
    """Return what kind of trace a text is, and its rows. Raises `DiagnosticError` where it is no trace, now or while read."""
    blocks = text.blocks()
    for number, lines in blocks:
        start = next((i for i, line in enumerate(lines) if line.strip()), None)
        if start is not None:
            first = (number + start, lines[start:])
            if first[1][0].lstrip().startswith(("{", "[")):
                return _json(text.path, first, blocks)
            return _csv(text.path, first, blocks)
    raise refused(text.path, "the file is empty", help=EXPECTED)


def _csv(path: str, first: Block, blocks: Iterator[Block]) -> tuple[Layout, Iterator[Chunk]]:
    csv.field_size_limit(LONGEST_CELL)
    number, lines = first
    if _is_plain(lines[:1]):
        columns = [name.strip() for name in lines[0].split(",")]
        layout, places = _layout(path, columns, number), _places(columns)
        return layout, _csv_chunks(path, chain([(number + 1, lines[1:])], blocks), layout, places)
    rows = _numbered(path, chain([first], blocks))
    columns = [name.strip() for name in next(rows)[1]]
    layout, places = _layout(path, columns, number), _places(columns)
    return layout, _parsed_chunks(rows, layout, places)


def _csv_chunks(path: str, blocks: Iterator[Block], layout: Layout, places: dict[str, int]) -> Iterator[Chunk]:
    """Yield the rows below the columns: split at commas as long as there are no quotes, which is three times as fast."""
    for block in blocks:
        if not _is_plain(block[1]):
            # What is quoted may go on in the next block.
            yield from _parsed_chunks(_numbered(path, chain([block], blocks)), layout, places)
        elif _is_even(block[1], len(places)):
            yield _split_chunk(block, layout, places)
        else:
            yield from _parsed_chunks(_numbered(path, iter([block])), layout, places)


def _is_plain(lines: list[str]) -> bool:
    return max(map(len, lines), default=0) <= LONGEST_CELL and not any('"' in line for line in lines)


def _is_even(lines: list[str], width: int) -> bool:
    """Tell whether all lines have as many cells as there are columns, and none is blank."""
    commas = set(map(methodcaller("count", ","), lines))
    return commas <= {width - 1} and all(map(methodcaller("strip", ", \t"), lines))


def _places(columns: list[str]) -> dict[str, int]:
    """Return where each column is; those without a name, as after a comma at the end, are told apart by their place."""
    return {name or f"({place})": place for place, name in enumerate(columns)}


def _split_chunk(block: Block, layout: Layout, places: dict[str, int]) -> Chunk:
    number, lines = block
    cells, width = ",".join(lines).split(",") if lines else [], len(places)
    columns = {name: cells[place::width] for name, place in places.items() if name in layout.read}
    return _chunk(range(number, number + len(lines)), columns, layout, {})


def _parsed_chunks(rows: Iterator[tuple[int, list[str]]], layout: Layout, places: dict[str, int]) -> Iterator[Chunk]:
    while some := list(islice(rows, CHUNK_ROWS)):
        yield _parsed_chunk(some, layout, places)


def _numbered(path: str, blocks: Iterator[Block]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank with the lines they begin in. Raises `DiagnosticError` for what is no CSV."""
    first, lines = next(blocks)
    # A quote that is never closed would swallow the rows after it, so quotes have to be right.
    reader = csv.reader(
        chain(lines, chain.from_iterable(lines for _, lines in blocks)), strict=True, skipinitialspace=True
    )
    line = first
    try:
        for row in reader:
            if any(map(str.strip, row)):
                yield line, row
            line = first + reader.line_num
    except csv.Error as error:
        if "field limit" in str(error):
            message = f"a cell is longer than {LONGEST_CELL:,} characters"
            raise refused(path, message, line, "close its quote, or leave columns of text out of the table") from None
        raise refused(path, f"not CSV: {error}", line, "check the quotes in this line") from None


def _parsed_chunk(rows: list[tuple[int, list[str]]], layout: Layout, places: dict[str, int]) -> Chunk:
    width = len(places)
    refused_rows: dict[int, str] = {}
    if any(len(row) != width for _, row in rows):
        refused_rows = {i: EXCESS for i, (_, row) in enumerate(rows) if any(map(str.strip, row[width:]))}
        rows = [(line, (row + [""] * width)[:width]) for line, row in rows]
    columns = {name: [row[place] for _, row in rows] for name, place in places.items() if name in layout.read}
    return _chunk([line for line, _ in rows], columns, layout, refused_rows)


def _chunk(lines: Sequence[int], columns: dict[str, list[str]], layout: Layout, refused_rows: dict[int, str]) -> Chunk:
    arrivals = columns.get(layout.arrival, [""] * len(lines))
    inputs, outputs = columns[layout.inputs], columns[layout.outputs]
    return Chunk(lines, arrivals, inputs, outputs, columns.get(layout.hits), columns.get(layout.hash_ids), refused_rows)


def _json(path: str, first: Block, blocks: Iterator[Block]) -> tuple[Layout, Iterator[Chunk]]:
    number, head = first[0], first[1][0].strip()
    if head.startswith("["):
        message = "this file is a list of JSON, not one object a line"
        raise refused(path, message, number, "write one request a line, without brackets around them", "json/syntax")
    if _object(head) is None:
        message = "the first line is not a whole JSON object"
        raise refused(path, message, number, "write one request a line, as {...}", "json/syntax")
    pairs = json.JSONDecoder(object_pairs_hook=list).decode(head)
    layout = _layout(path, [str(key) for key, _ in pairs], number, of="keys")

    def chunks() -> Iterator[Chunk]:
        yield _json_chunk(first, layout)
        for block in blocks:
            yield _json_chunk(block, layout)

    return layout, chunks()


def _json_chunk(block: Block, layout: Layout) -> Chunk:
    number, lines = block
    stripped = list(map(str.strip, lines))
    found = [_object(line) for line in stripped if line]
    rows = [row or {} for row in found]
    hits = [row.get(layout.hits) for row in rows]
    ids = [row.get(layout.hash_ids) for row in rows]
    return Chunk(
        [number + i for i, line in enumerate(stripped) if line],
        [row.get(layout.arrival) for row in rows],
        [row.get(layout.inputs) for row in rows],
        [row.get(layout.outputs) for row in rows],
        None if hits.count(None) == len(hits) else hits,
        None if ids.count(None) == len(ids) else ids,
        {i: NO_OBJECT for i, row in enumerate(found) if row is None},
    )


def _object(line: str) -> dict[str, object] | None:
    """Return the object that a line without blanks around it holds, None when it holds something else or more."""
    try:
        row, end = _DECODE(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and end == len(line) else None


def _layout(path: str, columns: list[str], line: int, of: str = "columns") -> Layout:
    """Return the layout of a file. Raises `DiagnosticError` where columns are missing, repeated or not separated by commas."""
    twice = next((name for place, name in enumerate(columns) if name and name in columns[:place]), None)
    if twice is not None:
        message = f"the {'column' if of == 'columns' else 'key'} `{tidy(twice)}` is there twice"
        raise refused(path, message, line, "leave one of them out")
    marked = [layout for layout in LAYOUTS if not layout.mark or layout.mark in columns]
    best = min(marked, key=lambda layout: len(layout.lacks(columns)))
    lacking = best.lacks(columns)
    if lacking and not _is_lengths_alone(best, lacking, columns):
        raise refused(path, _missing(best, lacking, columns, of), line, EXPECTED)
    return best


def _is_lengths_alone(layout: Layout, lacking: list[str], columns: Sequence[str]) -> bool:
    return lacking == [layout.arrival] and set(columns) <= {*layout.names, *_BESIDE}


def _missing(layout: Layout, lacking: list[str], columns: Sequence[str], of: str) -> str:
    joined = ",".join(columns)
    for separator, name in SEPARATORS.items():
        parts = [part.strip(' "') for part in joined.split(separator)]
        if min(len(x.lacks(parts)) for x in LAYOUTS) < len(lacking):
            return f"the columns are separated by {name}, not by commas; save the table as CSV with commas"
    close = {name: _close(name, lacking, columns) for name in lacking}
    if len(lacking) == len(layout.names) and not any(close.values()):
        return f"no known {of} in the first line; it has to name the columns"
    named = (f"`{name}`" + (f" (there is `{tidy(other)}`)" if other else "") for name, other in close.items())
    return f"{of} are missing: {', '.join(named)}"


def _close(name: str, lacking: list[str], columns: Sequence[str]) -> str | None:
    """Return the column that was most likely meant by a name, and by no other name that is missing."""
    return nearest(name, [column for column in columns if nearest(column, lacking) == name])
