"""Predictions of the speed model for many measurements at once: arrays over rows, one formula for each kind of load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.physics.constants import SpeedConstants
from planner.physics.loads import (
    ARRIVAL_BASE_WEIGHT,
    ARRIVAL_BURST_WEIGHT,
    ARRIVAL_MEDIAN_WEIGHT,
    LARGEST_PROMPT_LOAD,
    SMALLEST_ROOM_SHARE,
    closed_loop,
    decode_step_s,
    lone_prompt_s,
    max_throughput,
    mean_context,
    prompt_s,
    resident_bytes,
    slot_waits,
)
from planner.physics.memory import kv_footprint
from planner.physics.speed import STREAMED, Shape, shape_coefficients, stack
from planner.physics.step import StepCoefficients, Values, step_s
from planner.physics.types import Layout
from planner.validation.speed_rows import SpeedRow

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
OPEN_ROUNDS = 12
PREFILL_SHARE = 0.95
LEAST_PREDICTION = 1e-5


class Deployment(NamedTuple):
    """A shape and the engine class that runs it: what step coefficients depend on beside the constants."""

    shape: Shape
    engine: str


@dataclass(frozen=True)
class Batch:
    """Rows in columns: what does not depend on the constants of the model.

    `shape_of` and `prefill_of` are the positions in `deployments` of what decodes a row and what computes its prompts;
    `loads` maps each kind of load to the positions of its rows.
    """

    rows: tuple[SpeedRow, ...]
    deployments: tuple[Deployment, ...]
    shape_of: Index
    prefill_of: Index
    columns: Mapping[str, Array]
    statistics: npt.NDArray[np.str_]
    loads: Mapping[str, Index]

    @classmethod
    def of(cls, rows: Sequence[SpeedRow]) -> Batch:
        """Lay out rows. Raises `ValueError` for a row that cannot be computed (checked by the caller one by one)."""
        found: dict[tuple[object, ...], int] = {}
        deployments: list[Deployment] = []

        def position(row: SpeedRow, layout: Layout) -> int:
            key = (row.arch.name, row.device.name, layout, row.weights, row.kv, row.engine.name)
            if key not in found:
                found[key] = len(deployments)
                shape = Shape.of(row.arch, row.device, layout, row.weights, row.kv)
                deployments.append(Deployment(shape, row.engine.name))
            return found[key]

        shape_of = np.array([position(row, row.layout) for row in rows], dtype=np.intp)
        prefill_of = np.array([position(row, row.prefill_layout or row.layout) for row in rows], dtype=np.intp)
        columns = {name: np.array([get(row) for row in rows], dtype=np.float64) for name, get in _COLUMNS.items()}
        return cls(tuple(rows), tuple(deployments), shape_of, prefill_of, columns, _statistics(rows), _loads(rows))

    def take(self, index: Index) -> Batch:
        """Return the rows at `index`."""
        rows = tuple(self.rows[i] for i in index.tolist())
        both = np.concatenate([self.shape_of[index], self.prefill_of[index]])
        kept, positions = np.unique(both, return_inverse=True)
        return Batch(
            rows,
            tuple(self.deployments[i] for i in kept.tolist()),
            positions[: index.size],
            positions[index.size :],
            {name: values[index] for name, values in self.columns.items()},
            self.statistics[index],
            _loads(rows),
        )


_COLUMNS: dict[str, Callable[[SpeedRow], float]] = {
    "replicas": lambda r: r.replicas,
    "prompt": lambda r: r.prompt_tokens,
    "output": lambda r: r.output_tokens,
    "load": lambda r: r.load,
    "budget": lambda r: r.engine.budget_tokens,
    "reserving": lambda r: float(r.engine.reserving),
    "max_sequences": lambda r: r.max_sequences,
    "data": lambda r: float(r.layout.attention_data),
    "equal": lambda r: float(r.equal_lengths),
    "usable": lambda r: r.device.usable_bytes,
    "resident": lambda r: resident_bytes(r.arch, r.layout, r.weights),
    "global_bytes": lambda r: kv_footprint(r.arch, r.layout, r.kv, STREAMED).global_bytes_per_token,
    "local_bytes": lambda r: kv_footprint(r.arch, r.layout, r.kv, STREAMED).local_bytes_per_token,
    "window": lambda r: kv_footprint(r.arch, r.layout, r.kv, STREAMED).window_tokens,
    "fixed_bytes": lambda r: kv_footprint(r.arch, r.layout, r.kv, STREAMED).fixed_bytes,
    "prefill_ranks": lambda r: r.prefill_ranks,
    "requests": lambda r: r.requests,
}


def predict(batch: Batch, constants: SpeedConstants) -> Array:
    """Return the predicted value of every row, in the unit of its measured value."""
    shapes = stack([shape_coefficients(*each, constants) for each in batch.deployments])
    cap = _caps(batch, constants)
    predicted = np.full(len(batch.rows), np.nan)
    for kind, index in batch.loads.items():
        predicted[index] = _FORMULAS[kind](_Part(batch, index, shapes, cap, constants))
    # Far from the optimum a prompt can seem to cost less than nothing; the fit needs a logarithm there too.
    return np.asarray(np.maximum(predicted, LEAST_PREDICTION), dtype=np.float64)


def _statistics(rows: Sequence[SpeedRow]) -> npt.NDArray[np.str_]:
    return np.array([row.target.statistic for row in rows], dtype=np.str_)


def _loads(rows: Sequence[SpeedRow]) -> dict[str, Index]:
    kinds = np.array([_kind(row) for row in rows])
    return {kind: np.flatnonzero(kinds == kind) for kind in sorted(set(kinds.tolist()))}


def _kind(row: SpeedRow) -> str:
    statistic = row.target.statistic
    if statistic in ("decode", "prompt", "prompt_rate"):
        return "single"
    if row.scenario in ("offline_max", "mlperf_offline"):
        return "offline"
    if row.scenario == "static_batch":
        return "static"
    if row.scenario == "burst_all_at_once":
        return "burst"
    if row.scenario == "closed_loop":
        return "split" if row.prefill_layout is not None else "closed"
    return "open"


def _caps(batch: Batch, constants: SpeedConstants) -> Array:
    """Return how many sequences one replica holds (the capacity rule of the fit)."""
    c = batch.columns
    reserving = c["reserving"] > 0.0
    taken = c["resident"] + constants.runtime_bytes
    room = np.where(
        reserving,
        constants.memory_share_reserve * (c["usable"] - taken),
        constants.memory_share_preempt * c["usable"] - taken,
    )
    room = np.maximum(room, SMALLEST_ROOM_SHARE * c["usable"])
    held = np.where(reserving, constants.reserved_output_share, constants.held_output_share)
    tokens = c["prompt"] + held * c["output"]
    each = c["global_bytes"] * tokens + c["local_bytes"] * np.minimum(tokens, c["window"]) + c["fixed_bytes"]
    return np.asarray(np.maximum(np.minimum(room / each, c["max_sequences"]) * c["data"], 1.0), dtype=np.float64)


class _Part:
    """The rows of one kind of load, with their coefficients."""

    def __init__(
        self, batch: Batch, index: Index, shapes: StepCoefficients, cap: Array, constants: SpeedConstants
    ) -> None:
        self.statistics = batch.statistics[index]
        self.constants = constants
        self.c = shapes.take(batch.shape_of[index])
        self.prefill = shapes.take(batch.prefill_of[index])
        self.cap = cap[index]
        column = {name: values[index] for name, values in batch.columns.items()}
        self.prompt, self.output, self.budget = column["prompt"], column["output"], column["budget"]
        self.replicas, self.load, self.equal = column["replicas"], column["load"], column["equal"] > 0.0
        self.prefill_ranks = column["prefill_ranks"]
        self.requests = column["requests"]
        self.each = np.maximum(self.load / self.replicas, 1.0)

    def chosen(self, **values: Values) -> Array:
        """Return, for every row, the value of its statistic."""
        found = np.empty(self.statistics.size)
        for name in set(self.statistics.tolist()):
            asked = self.statistics == name
            found[asked] = np.broadcast_to(values[name], found.shape)[asked]
        return found


def _single(part: _Part) -> Array:
    context = part.prompt + 0.5 * part.output
    decode = 1.0 / step_s(part.c, 1.0, 1.0, context)
    lone = lone_prompt_s(part.c, part.prompt)
    return part.chosen(decode=decode, prompt=lone, prompt_rate=part.prompt / lone)


def _offline(part: _Part) -> Array:
    run = max_throughput(part.c, part.cap, part.prompt, part.output, part.budget, part.each)
    return np.asarray(run.output_tokens_per_s * part.replicas, dtype=np.float64)


def _static(part: _Part) -> Array:
    batch = np.minimum(part.each, part.cap)
    waves = np.ceil(part.each / batch)
    total = batch * part.prompt
    chunk = np.minimum(part.budget, total)
    prompts = part.c.prefill_factor * step_s(part.c, chunk, 0.0, 0.0, chunk, part.prompt) * total / chunk
    steps = np.maximum(part.output - 1.0, 0.0) * decode_step_s(part.c, batch, mean_context(part.prompt, part.output))
    latency = waves * (prompts + steps)
    return part.chosen(static=latency, static_rate=part.load * part.output / latency)


def _closed(part: _Part) -> Array:
    run = closed_loop(
        part.c, part.each, part.prompt, part.output, part.cap, part.budget, part.constants.burst_weight, equal_lengths=part.equal
    )  # fmt: skip
    rate, tpot, mean = run.output_tokens_per_s * part.replicas, run.tpot_s, run.ttft_mean_s
    return part.chosen(
        rate=rate, tpot_mean=tpot, tpot_p50=tpot, tpot_p99=tpot, ttft_mean=mean, ttft_p50=run.ttft_median_s, ttft_p99=mean
    )  # fmt: skip


def _split(part: _Part) -> Array:
    """Decode without prompts; prompts wait for GPUs of their own, all of whose ranks compute some, and which bound the rate."""
    context = mean_context(part.prompt, part.output)
    lone = lone_prompt_s(part.prefill, part.prompt)
    chunk = np.maximum(part.budget, part.prompt) * np.asarray(part.prefill.data_ranks)
    busy = part.c.prefill_factor * step_s(part.prefill, chunk, 0.0, 0.0, chunk, part.prompt) * part.prompt / chunk
    most = PREFILL_SHARE * part.prefill_ranks / busy / part.replicas
    batch = np.minimum(part.each, part.cap)
    for _ in range(3):
        step = decode_step_s(part.c, batch, context)
        batch = np.minimum(
            np.minimum(part.each * part.output * step / (part.output * step + lone), part.cap),
            most * part.output * step,
        )
        batch = np.maximum(batch, 0.05)
    step = decode_step_s(part.c, np.maximum(batch, 1.0), context)
    rate = batch / (part.output * step)
    load = np.minimum(rate * part.replicas * busy / part.prefill_ranks, PREFILL_SHARE)
    queue = load / (1.0 - load) * 0.5 * busy / part.prefill_ranks
    waiting = np.maximum(part.each - batch - rate * lone, 0.0) / rate
    first = part.c.request_s + lone + np.maximum(waiting, queue)
    together = 0.5 * np.maximum(part.load - 1.0, 0.0) * busy / part.prefill_ranks
    weight = part.constants.burst_weight
    mean = first + (ARRIVAL_BASE_WEIGHT + ARRIVAL_BURST_WEIGHT * weight) * together
    median = first + ARRIVAL_MEDIAN_WEIGHT * weight * together
    return part.chosen(
        rate=rate * part.output * part.replicas, tpot_mean=step, tpot_p50=step, tpot_p99=step, ttft_mean=mean, ttft_p50=median, ttft_p99=mean
    )  # fmt: skip


def _open(part: _Part) -> Array:
    """Fixed point of the batch at an arrival rate; beyond capacity the batch is full and requests wait in line."""
    context = mean_context(part.prompt, part.output)
    rate = part.load / part.replicas
    batch = np.minimum(rate * part.output * decode_step_s(part.c, 1.0 + 0.0 * rate, context), part.cap)
    for _ in range(OPEN_ROUNDS):
        tpot, _ = _busy(part, batch, context)
        batch = np.sqrt(np.maximum(batch, 0.5) * np.clip(rate * part.output * tpot, 0.5, part.cap))
    tpot, prompt = _busy(part, batch, context)
    share = np.minimum(rate * prompt / np.asarray(part.c.streams), LARGEST_PROMPT_LOAD)
    step = decode_step_s(part.c, batch, context)
    ttft = part.c.request_s + lone_prompt_s(part.c, part.prompt) + 0.5 * step + share / (1.0 - share) * 0.5 * prompt
    most = batch / (part.output * tpot)
    mean, median = slot_waits(part.requests / part.replicas, batch, most, rate)
    served = np.minimum(most, rate) * part.output * part.replicas
    return part.chosen(
        rate=served, tpot_mean=tpot, tpot_p50=tpot, tpot_p99=tpot, ttft_mean=ttft + mean, ttft_p50=ttft + median, ttft_p99=ttft + mean
    )  # fmt: skip


def _busy(part: _Part, batch: Array, context: Values) -> tuple[Array, Array]:
    prompt = np.asarray(prompt_s(part.c, batch, part.prompt, part.output, part.budget))
    step = decode_step_s(part.c, batch, context)
    return np.asarray(step + prompt * batch / part.c.streams / part.output), prompt


def _burst(part: _Part) -> Array:
    run = max_throughput(part.c, part.cap, part.prompt, part.output, part.budget, part.each)
    batch = np.asarray(run.batch)
    tpot = run.step_s + run.prompt_s * batch / part.c.streams / part.output
    lone = lone_prompt_s(part.c, part.prompt)
    rate = batch / (part.output * tpot)
    ttft = part.c.request_s + lone + 0.5 * (batch - 1.0) * run.prompt_s
    mean, median = slot_waits(part.each, batch, rate, np.inf)
    return part.chosen(
        rate=run.output_tokens_per_s * part.replicas, tpot_mean=tpot, tpot_p50=tpot, tpot_p99=tpot, ttft_mean=ttft + mean, ttft_p50=ttft + median, ttft_p99=ttft + mean
    )  # fmt: skip


_FORMULAS: dict[str, Callable[[_Part], Array]] = {
    "single": _single,
    "offline": _offline,
    "static": _static,
    "closed": _closed,
    "split": _split,
    "open": _open,
    "burst": _burst,
}
