"""Comma lists of flags: how each kind of value is read, and what is said when one cannot be. Leaves with usage errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NoReturn, TypeVar

from planner.cli.streams import usage_error
from planner.report.figures import visible
from planner.sizing.inputs import Unit, Workspace
from planner.source.nearest import nearest
from planner.units import UnitError, parse_quantity

T = TypeVar("T")

MOST_COUNT = 1e12
MOST_LAYERS = 10_000
MOST_HEADS = 10_000
MOST_WIDTH = 1_000_000
"""Beyond these no model is built: a larger value is a slip."""
MOST_GPUS = 4096
MOST_PARAMETERS = 1e18
LEAST_SIZE = 1.0
MOST_SIZE = 1e18
"""Bytes, or bytes per second: beyond this nothing exists, and products stay far from overflow."""
KIBI, MOST_MULTIPLE = 1024, 15
"""Token counts that are written with marked thousands: up to so many times a power of two from 1,024 on."""
NO_LABELS: Mapping[str, str] = MappingProxyType({})
_SCALES = {"b": 1e9, "t": 1e12}
_LONGEST_QUOTE = 40
_GROUP = re.compile(r"0\d\d", re.ASCII)
_LATER_GROUP = re.compile(r"[1-9]\d\d", re.ASCII)
_BEFORE_GROUP = re.compile(r"\d{1,3}", re.ASCII)


def items(flag: str, text: str | None, read: Callable[[str, str], T]) -> tuple[T, ...]:
    """Read every item of a comma list with `read(flag, item)`; an absent flag is an empty tuple."""
    if text is None:
        return ()
    parts = [visible(part).strip() for part in text.split(",")]
    if not all(parts):
        usage_error(f"{flag}: an item of the list is empty")
    _check_groups(flag, parts)
    return tuple(read(flag, part) for part in parts)


def single(flag: str, text: str, read: Callable[[str, str], T]) -> T:
    """Read the one value of a flag that takes no list."""
    return read(flag, visible(text).strip())


def name(flag: str, item: str) -> str:  # noqa: ARG001
    """Read a name as it is."""
    return item


def count(flag: str, item: str) -> int:
    """Read a whole number from one: `8192`, `8k` (8,000), `2M`."""
    return _whole(flag, item, _number(flag, item), MOST_COUNT)


def token_counts(flag: str, text: str | None) -> tuple[int, ...]:
    """Read every item of a comma list of token counts; two that look like one with its thousands marked are refused.

    Token counts are powers of two and multiples of them, so `8,192` is hardly 8 and 192 tokens, nor are `262,144` two
    lengths, the longer one first.
    """
    values = items(flag, text, count)
    parts = text.split(",") if text else []
    for before, part in pairwise(part.strip() for part in parts):
        if _BEFORE_GROUP.fullmatch(before) and _LATER_GROUP.fullmatch(part) and _is_one_count(before, part):
            usage_error(
                f"{flag}: a comma starts the next value, so `{before},{part}` is {before} and {part}: write"
                f" `{before}{part}` for one value, `{part},{before}` for two"
            )
    return values


def at_most(most: int) -> Callable[[str, str], int]:
    """Return a reader of whole numbers from one to `most`."""

    def read(flag: str, item: str) -> int:
        value = count(flag, item)
        if value > most:
            usage_error(f"{flag}: {quoted(item)} is more than {most:,}")
        return value

    return read


def count_or_zero(flag: str, item: str) -> int:
    """Read a whole number from zero."""
    value = _number(flag, item)
    return 0 if value == 0.0 else _whole(flag, item, value, MOST_COUNT)


def parameters(flag: str, item: str) -> float:
    """Read a parameter count: `70e9`, `70B`, `70G`, `1.5T`, `350M`."""
    scale = _SCALES.get(item[-1:].lower(), 1.0) if len(item) > 1 else 1.0
    value = _number(flag, item[:-1] if scale > 1.0 else item) * scale
    return float(_whole(flag, item, round(value, 3), MOST_PARAMETERS))


def factor(flag: str, item: str) -> float:
    """Read a number above zero."""
    value = _number(flag, item)
    if not 0.0 < value <= MOST_COUNT:
        usage_error(f"{flag}: {quoted(item)} is not a number above zero")
    return value


def share(flag: str, item: str) -> float:
    """Read a share from 0 to 1: `30 %` or `0.3`."""
    return _quantity(flag, item, "share")


def positive_share(flag: str, item: str) -> float:
    """Read a share above 0, at most 1."""
    value = share(flag, item)
    if value < 1e-6:
        usage_error(f"{flag}: {quoted(item)} is not above zero")
    return value


def memory(unit: Unit) -> Callable[[str, str], float]:
    """Return a reader of sizes such as `8GB` or `8 GiB`; a bare number is in `unit`."""

    def read(flag: str, item: str) -> float:
        text = f"{item} {unit}" if _is_bare(item) else item
        return _sized(flag, item, _quantity(flag, text, "memory"))

    return read


def bandwidth(flag: str, item: str) -> float:
    """Read a bandwidth such as `3.35 TB/s`."""
    if _is_zero(item):
        usage_error(f"{flag}: {quoted(item)} must be above zero")
    try:
        value = parse_quantity(item.removesuffix("/s").strip(), "memory")
    except UnitError as error:
        if error.kind in ("negative", "out-of-range"):
            usage_error(f"{flag}: {quoted(item)} must be a finite bandwidth above zero")
        value = None
    if value is None or not item.endswith("/s"):
        usage_error(f"{flag}: {quoted(item)} is not a bandwidth; write it as `3.35 TB/s`")
    return _sized(flag, item, value)


def workspace(unit: Unit) -> Callable[[str, str], Workspace]:
    """Return a reader of a share such as `10 %`, or of a size such as `2 GB`.

    A bare number above one is a size in `unit`; one that may be a share as well is refused.
    """
    size = memory(unit)

    def read(flag: str, item: str) -> Workspace:
        if item.endswith("%"):
            return Workspace(share=share(flag, item))
        if _is_bare(item):
            amount = _number(flag, item)
            if amount == 0.0:
                return Workspace(size_bytes=0.0)
            if amount <= 1.0:
                usage_error(
                    f"{flag}: {quoted(item)} may be a share or a size; write {100 * amount:g}% or {amount:g} {unit}"
                )
        return Workspace(size_bytes=size(flag, item))

    return read


def one_of(legal: Iterable[str]) -> Callable[[str, str], str]:
    """Return a reader of one of some words, ignoring case."""
    words = tuple(legal)

    def read(flag: str, item: str) -> str:
        folded = item.lower()
        if folded not in words:
            meant = nearest(folded, words)
            hint = f"did you mean `{meant}`? Known: " if meant else "known: "
            usage_error(f"{flag}: {quoted(item)} is none of its values; {hint}{', '.join(words)}")
        return folded

    return read


def format_of(legal: Iterable[str], labels: Mapping[str, str] = NO_LABELS) -> Callable[[str, str], str]:
    """Return a reader of the name of a number format, ignoring case; `labels` are other words for one."""
    words = tuple(legal)

    def read(flag: str, item: str) -> str:
        folded = labels.get(item.lower(), item.lower())
        if folded not in words:
            refuse_format(flag, item, words)
        return folded

    return read


def refuse_format(flag: str, name: str, legal: tuple[str, ...]) -> NoReturn:
    """Leave with a usage error: a number format is unknown."""
    close = nearest(name.lower(), legal)
    hint = f"did you mean `{close}`? Known: " if close else "known: "
    usage_error(f"{flag}: no format {quoted(name)}; {hint}{', '.join(legal)}")


def quoted(text: str) -> str:
    """Quote what a user wrote, on one line and shortened."""
    clean = visible(text)
    return f"`{clean if len(clean) <= _LONGEST_QUOTE else clean[: _LONGEST_QUOTE - 1] + '…'}`"


def _check_groups(flag: str, parts: list[str]) -> None:
    """Refuse `8,096`: no count is written `096`, so the comma marks thousands."""
    for before, part in pairwise(parts):
        if _BEFORE_GROUP.fullmatch(before) and _GROUP.fullmatch(part):
            usage_error(f"{flag}: a comma starts the next value: write `{before}{part}` instead of `{before},{part}`")


def _is_one_count(before: str, part: str) -> bool:
    """Tell whether two groups of digits look like one count: the values fall, or it is a small multiple of a power of two."""
    joined = int(before + part)
    odd = joined // (joined & -joined)
    return int(before) > int(part) or (joined % KIBI == 0 and odd <= MOST_MULTIPLE)


def _number(flag: str, item: str) -> float:
    return _quantity(flag, item, "count")


def _quantity(flag: str, item: str, dimension: str) -> float:
    try:
        return parse_quantity(item, dimension)
    except UnitError as error:
        usage_error(f"{flag}: {error.message}; {error.hint}")


def _whole(flag: str, item: str, value: float, most: float) -> int:
    if value < 1.0 or value != int(value):
        usage_error(f"{flag}: {quoted(item)} is not a whole number from 1")
    if value > most:
        usage_error(f"{flag}: {quoted(item)} is more than {most:.0e}")
    return int(value)


def _sized(flag: str, item: str, value: float) -> float:
    if value == 0.0:
        usage_error(f"{flag}: {quoted(item)} must be above zero")
    if not LEAST_SIZE <= value <= MOST_SIZE:
        usage_error(f"{flag}: {quoted(item)} is not between 1 byte and {MOST_SIZE / 1e9:.0e} GB")
    return value


def _is_bare(item: str) -> bool:
    try:
        parse_quantity(item, "count")
    except UnitError:
        return False
    return not item[-1:].isalpha()


def _is_zero(item: str) -> bool:
    """Tell whether a size or bandwidth is zero, with or without a unit."""
    try:
        return parse_quantity(item.removesuffix("/s").strip(), "memory") == 0.0
    except UnitError:
        return _is_bare(item) and parse_quantity(item, "count") == 0.0
