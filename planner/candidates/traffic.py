"""Resolve workloads: demand rates and equally likely token lengths, prefix cache and truncation applied."""

from __future__ import annotations

import numpy as np

from planner.candidates.types import Array, Assumption, ResolvedModel, ResolvedWorkload
from planner.physics.lengths import Lengths, joint_truncation
from planner.spec import FleetSpec, WorkloadSpec

LENGTH_POINTS = 32  # equally likely lengths per distribution
POINTS_PER_BIN = 8  # each is the mean of this many quantiles, so that the tail's share of the mean is kept
LEAST_PREFILL_TOKENS = 1.0  # engines recompute at least one token of a prompt that is cached whole


def resolve_workloads(spec: FleetSpec, models: dict[str, ResolvedModel]) -> dict[str, ResolvedWorkload]:
    """Resolve every workload of the spec, sorted by name."""
    return {
        name: _resolve(name, spec.workloads[name], models[spec.workloads[name].model])
        for name in sorted(spec.workloads)
    }


def _resolve(name: str, workload: WorkloadSpec, model: ResolvedModel) -> ResolvedWorkload:
    traffic = workload.traffic
    longest = float(model.max_model_len)
    prompts, answers = length_points(traffic.input_tokens.lengths), length_points(traffic.output_tokens.lengths)
    cut = joint_truncation(traffic.input_tokens.lengths, traffic.output_tokens.lengths, longest)
    prompts = np.minimum(prompts, max(1.0, longest - 1.0))
    answers = np.clip(answers, 1.0, max(1.0, longest - float(prompts.mean())))
    caching = model.spec.engine.prefix_caching
    shared = traffic.shared_prefix if caching else None
    computed, weights = _prefill(prompts, shared.tokens if shared else 0.0, shared.hit_rate if shared else 0.0)
    if caching and traffic.cached_input:
        computed = np.maximum(computed * (1.0 - traffic.cached_input), LEAST_PREFILL_TOKENS)
    return ResolvedWorkload(
        name=name,
        spec=workload,
        model=model.name,
        peak_requests_per_s=traffic.peak_requests_per_s(),
        mean_requests_per_s=traffic.mean_requests_per_s(),
        headroom=model.reliability.headroom,
        input_tokens=prompts,
        output_tokens=answers,
        prefill_tokens=computed,
        prefill_weights=weights,
        shared_tokens=shared.tokens if shared else 0.0,
        shared_hit_rate=shared.hit_rate if shared else 0.0,
        truncated_share=cut.share,
    )


def length_points(lengths: Lengths) -> Array:
    """Return `LENGTH_POINTS` equally likely lengths in tokens, ascending, with the mean of the distribution."""
    count = LENGTH_POINTS * POINTS_PER_BIN
    points = np.array([lengths.quantile((i + 0.5) / count) for i in range(count)])
    bins: Array = points.reshape(LENGTH_POINTS, POINTS_PER_BIN).mean(axis=1)
    return np.asarray(np.maximum(bins * (lengths.mean / float(bins.mean())), 1.0))


def _prefill(prompts: Array, shared_tokens: float, hit_rate: float) -> tuple[Array, Array]:
    """Return computed prompt tokens with their probabilities: whole prompts that miss, shortened ones that hit."""
    even = np.full(prompts.size, 1.0 / prompts.size)
    hits = np.maximum(prompts - shared_tokens, LEAST_PREFILL_TOKENS)
    return np.concatenate([prompts, hits]), np.concatenate([even * (1.0 - hit_rate), even * hit_rate])


def workload_assumptions(workloads: dict[str, ResolvedWorkload]) -> list[Assumption]:
    """List what was assumed about traffic: truncation, arrivals."""
    found: list[Assumption] = []
    for name, workload in workloads.items():
        traffic = workload.spec.traffic
        key = f"workloads.{name}.traffic"
        if workload.truncated_share > 0.0:
            value = f"{workload.truncated_share * 100:.2f} % of requests are cut to max_model_len"
            found.append(Assumption(f"{key}.truncated", value, "length distributions of the spec"))
        if traffic.arrival_cv2 == 1.0 and "arrival_cv2" not in traffic.model_fields_set:
            found.append(Assumption(f"{key}.arrival_cv2", "1 (Poisson arrivals)", "default"))
    return found
