"""Score the memory model against start-up logs: every part of every row, grouped errors, the worst rows named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from planner.catalog import Catalog
from planner.physics.memory import EngineMemory, HbmBudget, Outcome, UnknownArchitecture, UnknownFormat, hbm_budget
from planner.validation.cells import NotScored, Row
from planner.validation.measured import GIB, Measured, check_counts, check_weights, measured
from planner.validation.skips import CountedRows, Repeats, Skip, skip
from planner.validation.start_up import StartUp, start_up

METRICS = ("weights_gib", "kv_gib", "kv_tokens", "max_concurrency")
PARTS = ("weights", "activations", "runtime", "graphs")
WORST_ROWS = 8
P90 = 0.9
UNREAD = (NotScored, UnknownArchitecture, UnknownFormat)
"""What is raised for a row that cannot be scored."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One row with its prediction. `errors` are relative by metric; `off` names the part that is furthest off, in GiB."""

    case: str
    start: StartUp
    seen: Measured
    budget: HbmBudget
    errors: Mapping[str, float]
    off: str

    @property
    def worst(self) -> float:
        """Largest absolute error of the row over all metrics."""
        return max((abs(error) for error in self.errors.values()), default=0.0)


@dataclass(frozen=True, slots=True)
class Group:
    """Errors of one metric over rows of one engine and class; errors are fractions, `bias` is the median with sign."""

    engine: str
    arch_class: str
    n: int
    median_ape: float
    p90_ape: float
    bias: float


@dataclass(frozen=True, slots=True)
class Metric:
    """Errors of one metric over all rows, and by group, the worst group first."""

    rows: int
    median_ape: float
    p90_ape: float
    bias: float
    groups: tuple[Group, ...]

    @property
    def mean_of_group_medians(self) -> float:
        """Mean over groups of their median absolute errors."""
        return sum(g.median_ape for g in self.groups) / len(self.groups) if self.groups else 0.0


@dataclass(frozen=True, slots=True)
class MemoryValidation(CountedRows):
    """The answer: how many rows there were, why some were skipped, and how far off the rest is."""

    scored: tuple[Scored, ...]
    metrics: Mapping[str, Metric]
    outcome_rows: int
    outcome_right: int

    @property
    def outcome_accuracy(self) -> float:
        """Share of rows whose outcome was right, 0 without any."""
        return self.outcome_right / self.outcome_rows if self.outcome_rows else 0.0

    @property
    def worst(self) -> tuple[Scored, ...]:
        """Rows that are furthest off, worst first."""
        return tuple(sorted(self.scored, key=lambda s: (-s.worst, s.case))[:WORST_ROWS])


Constants = Callable[[StartUp], EngineMemory]


def own_constants(start: StartUp) -> EngineMemory:
    """Return the constants of the catalog."""
    return start.memory


def read_log(row: Row, catalog: Catalog, number: int) -> tuple[StartUp, Measured]:
    """Return the inputs of a row and what it measured. Raises one of `UNREAD` for a row that cannot be scored."""
    start = start_up(row, catalog, number)
    seen = measured(row, start.card_gib)
    check_weights(seen, start.arch, start.layout.gpus)
    budget = predict(start, start.memory)
    check_counts(seen, budget, start.max_model_len, start.layout.attention_data, start.card_gib)
    return start, seen


def validate_memory(rows: Sequence[Row], catalog: Catalog, constants: Constants = own_constants) -> MemoryValidation:
    """Score all rows. `constants` may replace the engine constants by others, for cross-validation."""
    skips: list[Skip] = []
    scored: list[Scored] = []
    repeats = Repeats()
    for number, row in enumerate(rows, start=2):
        try:
            start, seen = read_log(row, catalog, number)
            repeats.refuse(row)
            scored.append(_score(start, seen, constants(start)))
        except UNREAD as reason:
            skips.append(skip(row, reason))
    told = [s for s in scored if s.seen.outcome is not None]
    return MemoryValidation(
        rows=len(rows),
        skips=tuple(skips),
        scored=tuple(scored),
        metrics={name: _metric(name, scored) for name in METRICS},
        outcome_rows=len(told),
        outcome_right=sum(s.budget.outcome is s.seen.outcome for s in told),
    )


def predict(start: StartUp, memory: EngineMemory) -> HbmBudget:
    """Return the budget that the memory model gives for a start-up."""
    return hbm_budget(
        start.arch,
        start.device,
        start.layout,
        start.weights,
        start.kv,
        memory,
        start.max_num_seqs,
        start.batched_tokens,
        start.max_model_len,
        start.memory_fraction,
        start.chunked,
    )


def _score(start: StartUp, seen: Measured, memory: EngineMemory) -> Scored:
    budget = predict(start, memory)
    predicted = {
        "weights_gib": (budget.weights_bytes / GIB, seen.weights_gib),
        "kv_gib": (budget.kv_pool_bytes / GIB, seen.kv_gib),
        "kv_tokens": (budget.kv_tokens, seen.kv_tokens),
        "max_concurrency": (budget.max_concurrency, seen.max_concurrency),
    }
    errors = {name: p / m - 1.0 for name, (p, m) in predicted.items() if m is not None and m > 0.0}
    return Scored(start.case, start, seen, budget, errors, _furthest_part(budget, seen))


def _furthest_part(budget: HbmBudget, seen: Measured) -> str:
    """Name the part of the budget whose size is furthest off, with the difference; empty when no part was printed."""
    pairs = (
        (budget.weights_bytes, seen.weights_gib),
        (budget.activation_bytes, seen.activation_gib),
        (budget.runtime_bytes, seen.runtime_gib),
        (budget.graph_bytes, seen.graphs_gib),
    )
    off = {part: p / GIB - m for part, (p, m) in zip(PARTS, pairs, strict=True) if m is not None}
    if not off:
        return ""
    part = max(off, key=lambda name: abs(off[name]))
    return f"{part} {off[part]:+.2f} GiB"


def _metric(name: str, scored: Iterable[Scored]) -> Metric:
    by_group: dict[tuple[str, str], list[float]] = {}
    for row in scored:
        if name in row.errors:
            by_group.setdefault((row.start.engine, row.start.arch_class), []).append(row.errors[name])
    groups = [Group(engine, kind, len(errors), *_spread(errors)) for (engine, kind), errors in sorted(by_group.items())]
    everything = [error for errors in by_group.values() for error in errors]
    ordered = sorted(groups, key=lambda g: (-g.median_ape, g.engine, g.arch_class))
    return Metric(len(everything), *_spread(everything), tuple(ordered))


def _spread(errors: Sequence[float]) -> tuple[float, float, float]:
    if not errors:
        return 0.0, 0.0, 0.0
    sizes = sorted(abs(error) for error in errors)
    return median(sizes), percentile(sizes, P90), median(errors)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of ordered values by linear interpolation between ranks."""
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def is_right(row: Scored) -> bool | None:
    """Tell whether the outcome of a row was predicted, None when it does not state one."""
    return None if row.seen.outcome is None else row.budget.outcome is row.seen.outcome


__all__ = ["MemoryValidation", "Metric", "Outcome", "Scored", "is_right", "predict", "validate_memory"]
