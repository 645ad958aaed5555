"""What pools run with, against what the spec asks for today: another model or engine is no pool of the spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.candidates.types import ResolvedModel, Shape
from planner.plan.pools import serving_of
from planner.plan.schema import Plan, Pool
from planner.prefer.broken import Broken

ENGINE = "engine"


def other_settings(plan: Plan, models: Mapping[str, ResolvedModel], shapes: Mapping[str, Shape]) -> Iterator[Broken]:
    """Yield every setting of a pool that is not as the spec has it; `shapes` are those of the pools that are still had, by pool.

    A plan of an older release does not say all of them. A release of the engine counts where the spec names one; a pool that
    takes longer sequences than it must is fine.
    """
    for pool in plan.pools:
        model = models.get(pool.model)
        if model is None:
            continue
        shape = shapes.get(pool.name)
        yield from (_otherwise(pool, *each) for each in _settings(pool, model, shape) if each[1] != each[2])


Setting = tuple[str, object, object]
"""The key below the model, what the spec asks for, what runs."""


def _settings(pool: Pool, model: ResolvedModel, shape: Shape | None) -> Iterator[Setting]:
    yield f"{ENGINE}.name", model.engine.name, pool.engine.name
    if model.spec.engine.version is not None:
        yield f"{ENGINE}.version", model.engine.version, pool.engine.version
    if pool.max_model_len < model.max_model_len:
        yield "max_model_len", model.max_model_len, pool.max_model_len
    batched = model.spec.engine.max_num_batched_tokens
    yield f"{ENGINE}.max_num_batched_tokens", batched, pool.max_num_batched_tokens
    if pool.serving is None or shape is None:
        return
    asked, runs = serving_of(model, shape), pool.serving
    yield "use", asked.repository, runs.repository
    yield f"{ENGINE}.gpu_memory_utilization", asked.gpu_memory_utilization, runs.gpu_memory_utilization
    yield f"{ENGINE}.chunked_prefill", asked.chunked_prefill, runs.chunked_prefill
    yield f"{ENGINE}.prefix_caching", asked.prefix_caching, runs.prefix_caching
    yield f"{ENGINE}.block_size", asked.block_size, runs.block_size


def _otherwise(pool: Pool, key: str, asked: object, runs: object) -> Broken:
    reason = f"pool {pool.name} runs with {key} {runs}, and the spec asks for {asked}"
    return Broken("settings", pool.name, reason, key=f"models.{pool.model}.{key}")
