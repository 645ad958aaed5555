"""What a start-up log prints: sizes that its card can hold, counts, and how the start ended."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from planner.physics.memory import HbmBudget, Outcome
from planner.physics.types import Architecture
from planner.validation.cells import Kind, NotScored, Row, filled, number, quoted

OUTCOMES = {
    Outcome.OK: re.compile(r"ok\b"),
    Outcome.OOM: re.compile(r"(oom|out of memory)\b"),
    Outcome.KV_TOO_SMALL: re.compile(r"kv too small\b"),
}
"""How the cell of an outcome begins, with spaces for underscores and dashes."""
LARGEST_GIB = 10_000.0
SIZE = Kind("size", 0.0, LARGEST_GIB)
SIZE_OF_SOMETHING = Kind("size", 0.0, LARGEST_GIB, above=True)
LACKING = Kind("size", -LARGEST_GIB, LARGEST_GIB)
"""What is left for the cache, below zero where the start failed: engines print by how much they are short."""
CHANGE = Kind("size", -1.0, LARGEST_GIB)
"""A change of free memory while graphs are captured: what others free meanwhile can outweigh small graphs."""
COUNT = Kind("count", 0.0, 1e12, above=True)
NO_COUNT = Kind("count", 0.0, 1e12)
"""What a start that failed may print: a cache of nothing."""
ROUNDING = 1.01
"""Logs print two digits after the point, and some read GB as GiB of a card that is smaller."""
LEAST_BITS = 1.0
"""No format is narrower; real logs have 4.6 bits for each parameter and more."""
OTHER_COUNT = 1.25
"""Versions count the tokens of a pool in other ways, by blocks and groups of layers; none reaches this many more."""
OTHER_SIZE = 10.0
"""Factor between a count of tokens and the size of their cache that no other format, layer group or rank explains."""
GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Measured:
    """What a log prints, None where it does not. Sizes in GiB per GPU, as printed."""

    weights_gib: float | None
    activation_gib: float | None
    runtime_gib: float | None
    graphs_gib: float | None
    kv_gib: float | None
    kv_tokens: float | None
    max_concurrency: float | None
    outcome: Outcome | None


def measured(row: Row, card_gib: float) -> Measured:
    """Return the measured side of a row. Raises `NotScored` for a cell that a card of this size cannot print."""
    outcome = _outcome(row)
    failed = outcome not in (None, Outcome.OK)
    sizes = {
        column: number(row, column, kind)
        for column, kind in (
            ("weights_gib_per_gpu", SIZE_OF_SOMETHING),
            ("activation_gib", SIZE),
            ("non_torch_gib", SIZE),
            ("cudagraph_gib", CHANGE),
            ("kv_gib_per_gpu", LACKING if failed else SIZE_OF_SOMETHING),
        )
    }
    _check_sizes(sizes, card_gib)
    counts = NO_COUNT if failed else COUNT
    seen = Measured(
        weights_gib=sizes["weights_gib_per_gpu"],
        activation_gib=sizes["activation_gib"],
        runtime_gib=sizes["non_torch_gib"],
        graphs_gib=sizes["cudagraph_gib"],
        kv_gib=sizes["kv_gib_per_gpu"],
        kv_tokens=number(row, "kv_tokens", counts),
        max_concurrency=number(row, "max_concurrency", counts),
        outcome=outcome,
    )
    if all(getattr(seen, field.name) is None for field in fields(seen)):
        raise NotScored("no measured column is filled", scorable=False)
    return seen


def check_counts(seen: Measured, budget: HbmBudget, tokens_each: int, groups: int, card_gib: float) -> None:
    """Raise `NotScored` for a cache of more tokens than the whole card would hold, or of other tokens than its size tells.

    `tokens_each` is the longest sequence, `groups` how many groups of attention data parallelism have a cache each.
    """
    longest_gib = budget.longest_bytes / GIB
    most, told = OTHER_COUNT * card_gib / longest_gib * groups, max(seen.kv_gib or 0.0, 0.0) / longest_gib * groups
    for column, value, each in (
        ("kv_tokens", seen.kv_tokens, tokens_each),
        ("max_concurrency", seen.max_concurrency, 1),
    ):
        if not value:
            continue
        limit, by_size = most * each, told * each
        if value > limit:
            raise NotScored(
                f"{column} {value:,.6g} is more than the card holds ({card_gib:,.4g} GiB, at most {limit:,.4g})",
                scorable=True,
            )
        if by_size and not 1.0 / OTHER_SIZE <= value / by_size <= OTHER_SIZE:
            raise NotScored(
                f"{column} {value:,.6g} contradicts kv_gib_per_gpu {seen.kv_gib:g}, which holds about {by_size:,.4g}",
                scorable=True,
            )


def check_weights(seen: Measured, arch: Architecture, gpus: int) -> None:
    """Raise `NotScored` for weights that are too small for the parameters of the model, however they are stored."""
    if seen.weights_gib is not None and seen.weights_gib * GIB * gpus * 8 < LEAST_BITS * arch.n_params_total:
        raise NotScored(
            f"weights_gib_per_gpu {seen.weights_gib:g} x {gpus} is less than a bit for each of the"
            f" {arch.n_params_total / 1e9:.3g} billion parameters of {arch.name}",
            scorable=True,
        )


def _check_sizes(sizes: dict[str, float | None], card_gib: float) -> None:
    found = {column: value for column, value in sizes.items() if value is not None}
    over = next((column for column, value in found.items() if abs(value) > card_gib * ROUNDING), None)
    if over is not None:
        raise NotScored(f"{over} {found[over]:g} is more than the card holds ({card_gib:,.4g} GiB)", scorable=True)
    together = sum(max(value, 0.0) for value in found.values())
    if together > card_gib * ROUNDING:
        raise NotScored(
            f"{', '.join(found)} are {together:,.4g} GiB together, more than the card holds ({card_gib:,.4g} GiB)",
            scorable=True,
        )


def _outcome(row: Row) -> Outcome | None:
    text = filled(row.get("outcome", ""))
    if not text:
        return None
    words = re.sub(r"[\s_-]+", " ", text.casefold())
    for outcome, begins in OUTCOMES.items():
        if begins.match(words):
            return outcome
    raise NotScored(f"outcome {quoted(text)} is not known; it begins with ok, oom or kv too small", scorable=True)
