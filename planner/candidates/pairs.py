"""Arrays over pairs of a shape and a workload: what the latency closed form is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.candidates.types import Array, ResolvedModel, ResolvedWorkload, Shape
from planner.physics.constants import SpeedConstants
from planner.physics.latency import Pairs
from planner.physics.memory import KvFootprint
from planner.physics.speed import StepCoefficients, coefficients, stack

USABLE_POOL_SHARE = 0.99  # engines keep 1 % of the blocks free as a watermark against preemption
NO_LIMIT_S = np.inf
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class KvLoad:
    """KV bytes per GPU of the running sequences of a pair, arrays over pairs.

    `mean_bytes` of one sequence averaged over its life, `slots` sequences that the pools of one replica hold at once.
    """

    mean_bytes: Array
    slots: Array


@dataclass(frozen=True)
class ShapeArrays:
    """The shapes of one model with their step coefficients as arrays."""

    model: ResolvedModel
    shapes: tuple[Shape, ...]
    step: StepCoefficients

    @classmethod
    def of(cls, model: ResolvedModel, shapes: Sequence[Shape], constants: SpeedConstants) -> ShapeArrays:
        """Fold the speed model of every shape; `shapes` must not be empty."""
        return cls(model, tuple(shapes), stack([step_of(model, shape, constants) for shape in shapes]))

    def take(self, keep: Indices) -> ShapeArrays:
        """Return the shapes at `keep`, in that order."""
        return ShapeArrays(self.model, tuple(self.shapes[i] for i in keep), self.step.take(keep))

    @cached_property
    def kv_pool_bytes(self) -> Array:
        """KV room per GPU by shape."""
        return np.array([shape.budget.kv_pool_bytes for shape in self.shapes])

    @cached_property
    def attention_data(self) -> Array:
        """Groups by shape that hold sequences of their own."""
        return np.array([float(shape.layout.attention_data) for shape in self.shapes])

    @cached_property
    def footprints(self) -> tuple[tuple[KvFootprint, ...], Indices]:
        """The distinct KV footprints, and the one of each shape: shapes of a layout share theirs on every GPU type."""
        number = {foot: n for n, foot in enumerate(dict.fromkeys(shape.budget.kv for shape in self.shapes))}
        return tuple(number), np.array([number[shape.budget.kv] for shape in self.shapes], dtype=np.intp)


def step_of(model: ResolvedModel, shape: Shape, constants: SpeedConstants) -> StepCoefficients:
    """Fold the speed model of one shape."""
    engine_class = model.engine.speed_class(shape.device.vendor)
    return coefficients(
        model.architecture, shape.device, shape.layout, shape.weights, shape.kv_cache, engine_class, constants
    )


def pair_indices(shapes: int, workloads: int) -> tuple[Indices, Indices]:
    """Return the shape index and the workload index of every pair, shapes outermost."""
    shape, workload = np.divmod(np.arange(shapes * workloads), workloads)
    return shape.astype(np.intp), workload.astype(np.intp)


def make_pairs(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    shape_of: Indices,
    workload_of: Indices,
    kv_slots: Array,
    replicas: Array,
    slots: Array | None = None,
) -> Pairs:
    """Assemble the pairs `(shape_of[p], workload_of[p])` for pools of `replicas[p]` replicas.

    `slots` is the engine's cap of sequences per replica, by default the one of the shape.
    """
    engine = arrays.model.spec.engine
    step = arrays.step.take(shape_of)
    size = shape_of.size

    def by_workload(values: Sequence[Array | float]) -> Array:
        return np.asarray(np.stack([np.asarray(v, dtype=np.float64) for v in values])[workload_of])

    def by_shape(values: Sequence[float]) -> Array:
        return np.asarray(values, dtype=np.float64)[shape_of]

    prefill_tokens, prefill_weights = prefill_points(workloads)
    return Pairs(
        step=step,
        input_tokens=by_workload([w.input_tokens for w in workloads]),
        prefill_tokens=prefill_tokens[workload_of],
        prefill_weights=prefill_weights[workload_of],
        output_tokens=by_workload([w.output_tokens for w in workloads]),
        arrival_cv2=by_workload([w.spec.traffic.arrival_cv2 for w in workloads]),
        slots=by_shape([float(s.max_num_seqs) for s in arrays.shapes]) if slots is None else slots,
        kv_slots=kv_slots,
        token_budget=np.full(size, float(engine.max_num_batched_tokens)),
        chunked=np.full(size, engine.chunked_prefill),
        replicas=replicas,
        step_factor=by_shape([s.throughput_factor for s in arrays.shapes]),
        ttft_factor=by_shape([s.ttft_factor / s.throughput_factor for s in arrays.shapes]),
        fixed_ttft_s=np.asarray(step.request_s, dtype=np.float64),
    )


def prefill_points(workloads: Sequence[ResolvedWorkload]) -> tuple[Array, Array]:
    """Return computed prompt tokens and their weights, one row per workload, without the last ones that weigh nothing."""
    size = max(w.prefill_tokens.size for w in workloads)
    tokens = np.stack([np.pad(w.prefill_tokens, (0, size - w.prefill_tokens.size), "edge") for w in workloads])
    weights = np.stack([np.pad(w.prefill_weights, (0, size - w.prefill_weights.size)) for w in workloads])
    used = int(np.flatnonzero(weights.any(axis=0))[-1]) + 1
    return tokens[:, :used], weights[:, :used]


def limits_of(workloads: Sequence[ResolvedWorkload], workload_of: Indices) -> dict[str, Array]:
    """Return the latency limits in seconds by key, arrays over pairs, infinite where a workload has none."""
    keys = sorted({key for w in workloads for key in w.spec.slo})
    return {
        key: np.asarray([w.spec.slo.get(key, NO_LIMIT_S) for w in workloads], dtype=np.float64)[workload_of]
        for key in keys
    }


def kv_load(
    arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], shape_of: Indices, workload_of: Indices
) -> KvLoad:
    r"""Return mean KV bytes of a running sequence and the sequences that fit, for every pair.

    `b` sequences fit when `b m + \sqrt b \sigma = 0.99 K - hole`, `m` and `\sigma` mean and standard deviation of one
    sequence over its life, `hole` the pool that the blocked head of the queue leaves empty, `E[i^2] / 2 E[i]` tokens.
    """
    mean, deviation, hole, shared = (np.zeros(shape_of.size) for _ in range(4))
    kinds, kind_of = arrays.footprints
    for number, workload in enumerate(workloads):
        at = np.flatnonzero(workload_of == number)
        used, back = np.unique(kind_of[shape_of[at]], return_inverse=True)
        foot = _Footprints.of([kinds[i] for i in used])
        prompts = workload.input_tokens
        blocked, prefix = np.mean(prompts**2) / (2.0 * np.mean(prompts)), workload.shared_tokens
        each = (*_life_moments(foot, workload), *(foot.bytes_at(np.array([blocked, prefix])) - foot.fixed[:, None]).T)
        mean[at], deviation[at], hole[at], shared[at] = (values[back] for values in each)
    pools, groups = arrays.kv_pool_bytes[shape_of], arrays.attention_data[shape_of]
    room = np.maximum(USABLE_POOL_SHARE * pools - hole - shared, 0.0) / mean
    spread = deviation / mean
    root = 0.5 * (np.sqrt(spread**2 + 4.0 * room) - spread)
    return KvLoad(mean, groups * root**2)


@dataclass(frozen=True)
class _Footprints:
    """KV footprints of several shapes as arrays."""

    per_token: Array
    per_local_token: Array
    window: Array
    fixed: Array

    @classmethod
    def of(cls, kv: Sequence[KvFootprint]) -> _Footprints:
        return cls(
            np.array([k.global_bytes_per_token for k in kv]),
            np.array([k.local_bytes_per_token for k in kv]),
            np.array([k.window_tokens for k in kv]),
            np.array([k.fixed_bytes for k in kv]),
        )

    def bytes_at(self, tokens: Array) -> Array:
        """Return bytes by shape and token count, [shapes, tokens]."""
        inside = np.minimum(tokens[None, :], self.window[:, None])
        return np.asarray(
            self.per_token[:, None] * tokens[None, :] + self.per_local_token[:, None] * inside + self.fixed[:, None]
        )


def _life_moments(foot: _Footprints, workload: ResolvedWorkload) -> tuple[Array, Array]:
    """Return mean and standard deviation, over all decode steps, of the bytes that a sequence holds."""
    prompts, answers = workload.input_tokens[:, None], workload.output_tokens[None, :]
    held = (prompts + answers / 2.0).ravel()
    steps = np.broadcast_to(answers - 1.0, (prompts.size, answers.size)).ravel()
    steps = steps if steps.sum() > 0.0 else np.ones_like(held)
    hit = workload.shared_hit_rate
    tokens = np.concatenate([held, np.maximum(held - workload.shared_tokens, 1.0)])
    weights = np.concatenate([steps * (1.0 - hit), steps * hit]) / steps.sum()
    values = foot.bytes_at(tokens)
    mean = values @ weights
    variance = np.maximum((values**2) @ weights - mean**2, 0.0)
    return np.maximum(mean, 1.0), np.sqrt(variance)
