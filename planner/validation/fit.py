"""Fit the constants of the memory model to start-up logs that print their parts. Medians, so that one log bends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import log2
from statistics import median
from typing import Any

from planner.catalog import Catalog
from planner.physics.engine_memory import WIDE_BYTES, EngineMemory, feed_forward_width
from planner.validation.cells import Row
from planner.validation.measured import GIB, Measured
from planner.validation.memory import UNREAD, predict, read_log
from planner.validation.skips import Repeats, Skip, skip
from planner.validation.start_up import StartUp

SMALL_VOCABULARY = 100_000
"""Below this vocabulary the forward pass is the peak; above it sampling is, unless a whole long prompt is one batch."""
LONG_BATCH_TOKENS = 16_384
DOMINANT = 0.9
LEAST_GRAPH_ROWS = 5


@dataclass(frozen=True, slots=True)
class Fitted:
    """One constant of one range of an engine: the value in the catalog, the fitted one, and from how many logs."""

    engine: str
    versions: str
    constant: str
    catalog: float
    fitted: float
    logs: int


@dataclass(frozen=True, slots=True)
class Log:
    """A start-up with what was printed."""

    start: StartUp
    seen: Measured


def read_logs(rows: Sequence[Row], catalog: Catalog) -> tuple[list[Log], list[Skip]]:
    """Return the rows that the memory model can compute, and the others with their reasons."""
    logs: list[Log] = []
    left_out: list[Skip] = []
    repeats = Repeats()
    for number, row in enumerate(rows, start=2):
        try:
            log = Log(*read_log(row, catalog, number))
            repeats.refuse(row)
            logs.append(log)
        except UNREAD as reason:
            left_out.append(skip(row, reason))
    return logs, left_out


def usable_logs(rows: Sequence[Row], catalog: Catalog) -> list[Log]:
    """Return the rows that the memory model can compute."""
    return read_logs(rows, catalog)[0]


def fit(logs: Iterable[Log]) -> list[Fitted]:
    """Fit every range of every engine that the logs say something about, sorted by engine, range and constant.

    In this order, each on what the ones before give: the forward pass (small vocabularies, or prompts in one batch),
    sampling (`bytes_per_logit`), runtime by tensor width, graphs by layers.
    """
    ranges: dict[tuple[str, str], list[Log]] = {}
    for log in logs:
        ranges.setdefault((log.start.engine, log.start.memory.versions), []).append(log)
    return [fitted for (_, _), own in sorted(ranges.items()) for fitted in _fit_range(own)]


def with_constants(memory: EngineMemory, fitted: Iterable[Fitted]) -> EngineMemory:
    """Return the memory constants with the fitted ones of its range put in."""
    own: dict[str, Any] = {
        f.constant: f.fitted for f in fitted if (f.engine, f.versions) == (memory.engine, memory.versions)
    }
    return replace(memory, **own) if own else memory


def _fit_range(logs: Sequence[Log]) -> list[Fitted]:
    memory = logs[0].start.memory
    found: dict[str, tuple[float, int]] = {}

    def take(constant: str, values: Sequence[float]) -> None:
        nonlocal memory
        if values:
            found[constant] = (median(values), len(values))
            changed: dict[str, Any] = {constant: found[constant][0]}
            memory = replace(memory, **changed)

    take("forward_hidden_copies", [_copies(log) for log in logs if _forward_is_peak(log)])
    take("bytes_per_logit", [_per_logit(log) for log in logs if _sampling_is_peak(log, memory)])
    for tensor, constant in ((1, "runtime_bytes_tp1"), (2, "runtime_bytes_tp2")):
        take(constant, _runtimes(logs, memory, tensor))
    take("runtime_bytes_per_doubling", _per_doubling(logs, memory))
    for constant, value in _graphs(logs).items():
        found[constant] = value
    first = logs[0].start
    return [
        Fitted(first.engine, memory.versions, name, getattr(first.memory, name), value, count)
        for name, (value, count) in found.items()
    ]


def _batch(log: Log) -> int:
    start = log.start
    return start.batched_tokens if start.chunked else max(start.batched_tokens, start.max_model_len)


def _plain(log: Log) -> bool:
    """Tell whether a log prints an activation peak that is neither of images, stages nor 32-bit computation."""
    start = log.start
    return (
        log.seen.activation_gib is not None
        and start.layout.pipeline == 1
        and not start.arch.vision_parameters
        and start.weights != "fp32"
    )


def _forward_is_peak(log: Log) -> bool:
    small = log.start.arch.vocab < SMALL_VOCABULARY and not log.start.arch.is_moe
    return _plain(log) and (small or _batch(log) >= LONG_BATCH_TOKENS)


def _copies(log: Log) -> float:
    start, tokens = log.start, _batch(log)
    inner = feed_forward_width(start.arch, start.layout) * WIDE_BYTES * tokens
    return (_bytes(log.seen.activation_gib) - inner) / (start.arch.d_model * WIDE_BYTES * tokens)


def _sampling_is_peak(log: Log, memory: EngineMemory) -> bool:
    if not _plain(log) or log.start.arch.vocab < SMALL_VOCABULARY:
        return False
    silent = replace(memory, bytes_per_logit=0.0)
    forward = silent.activation_bytes(log.start.arch, log.start.layout, log.start.max_num_seqs, _batch(log))
    return forward < DOMINANT * _bytes(log.seen.activation_gib)


def _per_logit(log: Log) -> float:
    start, tokens = log.start, _batch(log)
    rows = min(start.max_num_seqs, start.memory.max_logit_rows or start.max_num_seqs, tokens)
    hidden = start.arch.d_model * WIDE_BYTES * tokens
    return (_bytes(log.seen.activation_gib) - hidden) / (rows * start.arch.vocab)


def _runtimes(logs: Sequence[Log], memory: EngineMemory, tensor: int) -> list[float]:
    """Return runtime as printed; where no log of this width prints it, what is missing from the pool."""
    own = [log for log in logs if log.start.layout.tensor == tensor and log.start.layout.pipeline == 1]
    printed = [_bytes(log.seen.runtime_gib) for log in own if log.seen.runtime_gib is not None]
    return printed or [missing for log in own if (missing := _missing(log, memory)) is not None]


def _per_doubling(logs: Sequence[Log], memory: EngineMemory) -> list[float]:
    widths = sorted({log.start.layout.tensor for log in logs if log.start.layout.tensor > 2})
    steps = [(r - memory.runtime_bytes_tp2) / (log2(w) - 1) for w in widths for r in _runtimes(logs, memory, w)]
    return [median(steps)] * len(steps) if steps and median(steps) >= 0.0 else []


def _missing(log: Log, memory: EngineMemory) -> float | None:
    """Return what the pool lacks beside weights and activations, for total-memory engines; None without a pool."""
    start, seen = log.start, log.seen
    if seen.kv_gib is None and seen.kv_tokens is None:
        return None
    budget = predict(
        start, replace(memory, runtime_bytes_tp1=0.0, runtime_bytes_tp2=0.0, runtime_bytes_per_doubling=0.0)
    )
    if seen.kv_gib is not None:
        pool = _bytes(seen.kv_gib)
    else:
        pool = budget.kv_pool_bytes * float(seen.kv_tokens or 0.0) / budget.kv_tokens if budget.kv_tokens else 0.0
    return max(budget.kv_pool_bytes - pool, 0.0)


def _graphs(logs: Sequence[Log]) -> dict[str, tuple[float, int]]:
    """Least squares of printed graphs over layers for dense models; experts take the median of what is left."""
    printed = [log for log in logs if (log.seen.graphs_gib or 0.0) > 0.0 and log.start.layout.pipeline == 1]
    dense = [(log.start.arch.n_layers, _bytes(log.seen.graphs_gib)) for log in printed if not log.start.arch.is_moe]
    if len(dense) < LEAST_GRAPH_ROWS or len({layers for layers, _ in dense}) == 1:
        return {}
    mean_x, mean_y = (sum(column) / len(dense) for column in zip(*dense, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in dense) / sum((x - mean_x) ** 2 for x, _ in dense)
    base = mean_y - slope * mean_x
    rest = [
        _bytes(log.seen.graphs_gib) - base - slope * log.start.arch.n_layers for log in printed if log.start.arch.is_moe
    ]
    found = {"graph_bytes_base": (base, len(dense)), "graph_bytes_per_layer": (slope, len(dense))}
    return found | ({"graph_bytes_moe": (max(median(rest), 0.0), len(rest))} if rest else {})


def _bytes(gib: float | None) -> float:
    return (gib or 0.0) * GIB
