"""From a pool of a plan to what its engines are given: costs of steps as whole picoseconds, rules, blocks of KV cache."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from planner.candidates.pairs import step_of
from planner.candidates.types import ResolvedModel
from planner.physics.constants import SpeedConstants
from planner.physics.memory import KvFootprint
from planner.physics.step import StepCoefficients, step_parts
from planner.plan.assess import PoolLoad
from planner.plan.pools import budget_at_cap
from planner.simulate.types import PS_PER_S, Batching, EngineRules, StepCosts

WATERMARK_SHARE = 0.01  # of the blocks, which engines keep free when they admit
NO_TOKENS = 1e-6  # in a step that only reads weights
STATE_PARTS = 1000  # blocks of a cache that does not grow with the context: so many hold one sequence
NO_GROWTH = 1 << 40  # tokens in a block of such a cache


@dataclass(frozen=True)
class PoolModel:
    """What the engines of a pool are like. `engines` counts pipeline microbatches apart, each with its share of a replica.

    The time to first token that a client sees is that of the engine plus `request_s`, times `ttft_factor`. Blocks of
    `blocks` hold `block_bytes` on one GPU. Each of the `groups` of a replica with attention-data parallelism has a prefix of its own.
    """

    costs: StepCosts
    rules: EngineRules
    engines: int
    request_s: float
    ttft_factor: float
    kv: KvFootprint
    block_bytes: float
    groups: int = 1

    def reserved_blocks(self, tokens: int) -> int:
        """Return the blocks that a sequence of so many tokens at its end holds beside those of its growing context.

        Recurrent state, and the window of local layers: it is held from the start at the size that it ends with.
        """
        block = self.rules.block_tokens if self.kv.global_bytes_per_token else 1
        local = self.kv.local_bytes_per_token * min(self.kv.window_tokens, ceil(tokens / block) * block)
        return ceil((self.kv.fixed_bytes + local) / self.block_bytes)

    @property
    def has_reserve(self) -> bool:
        """Tell whether sequences hold blocks beside those of their growing context."""
        return self.kv.fixed_bytes > 0.0 or self.kv.local_bytes_per_token > 0.0


def pool_model(
    model: ResolvedModel,
    load: PoolLoad,
    constants: SpeedConstants,
    longest_prompt: int,
    batching: Batching | None = None,
) -> PoolModel:
    """Return the engines of a pool as its plan describes them, with predicted times at the confidence of the spec.

    `longest_prompt` bounds the tokens of a step of prompts alone. `batching` is by default that of the engine settings.
    """
    engine, shape = model.spec.engine, load.shape
    c = step_of(model, shape, constants)
    streams = int(c.streams)
    if batching is None:
        batching = Batching.CHUNKED if engine.chunked_prefill else Batching.PROMPTS_FIRST
    budget = budget_at_cap(model, shape, load.max_num_seqs)
    block_tokens, block_bytes = _block(budget.kv, engine.block_size)
    whole = shape.layout.attention_data * floor(budget.kv_pool_bytes / block_bytes)
    # Microbatches share one cache: each has its part of it, but room for the longest request, as engines have.
    longest = ceil(budget.kv.bytes_at(model.max_model_len) / block_bytes) + 1
    blocks = max(whole // streams, min(whole, longest)) if streams > 1 else whole
    slots = max(1, load.max_num_seqs // streams)
    rules = EngineRules(
        batching=batching,
        slots=slots,
        token_budget=engine.max_num_batched_tokens,
        blocks=blocks,
        watermark_blocks=ceil(WATERMARK_SHARE * blocks),
        block_tokens=block_tokens,
    )
    return PoolModel(
        costs=step_costs(c, slots, engine.max_num_batched_tokens, longest_prompt, shape.throughput_factor),
        rules=rules,
        engines=load.replicas * streams,
        request_s=float(c.request_s),
        ttft_factor=shape.ttft_factor / shape.throughput_factor,
        kv=budget.kv,
        block_bytes=block_bytes,
        groups=shape.layout.attention_data,
    )


def step_costs(c: StepCoefficients, slots: int, token_budget: int, longest_prompt: int, factor: float) -> StepCosts:
    """Return the step time of `planner.physics.step` as the parts of a step, every one times `factor`.

    The time that prompts add to a step is that of its weights, experts and collectives at more tokens, times the factor of
    the engine on prompts, as the closed form takes it.
    """
    decode = np.maximum(np.arange(slots + 1, dtype=np.float64), NO_TOKENS)
    tokens = np.maximum(np.arange(max(token_budget, slots) + 1, dtype=np.float64), NO_TOKENS)
    alone = np.maximum(np.arange(max(token_budget, longest_prompt) + 1, dtype=np.float64), NO_TOKENS)
    beside = step_parts(c, tokens, 0.0, 0.0)
    shared = beside.attention_weights_s + beside.ffn_s + beside.experts_s + beside.collectives_s
    return StepCosts(
        decode_ps=_rising(step_parts(c, decode, decode, 0.0).total_s, factor),
        prompt_ps=_rising(c.prefill_factor * shared, factor),
        alone_ps=_rising(c.prefill_factor * step_parts(c, alone, 0.0, 0.0).total_s, factor),
        context_ps=_ps(_norm(float(c.kv_global_s), float(c.mla_token_s), c.exponent) * factor),
        attended_ps=_ps(float(c.prefill_factor * c.prefill_global_s) * factor),
        local_context_ps=_ps(float(c.kv_local_s) * factor),
        local_attended_ps=_ps(float(c.prefill_factor * c.prefill_local_s) * factor),
        window_tokens=int(c.window_tokens),
    )


def _norm(read_s: float, compute_s: float, exponent: float) -> float:
    high = max(read_s, compute_s)
    return high * (1.0 + (min(read_s, compute_s) / high) ** exponent) ** (1.0 / exponent) if high > 0.0 else 0.0


def _ps(seconds: float) -> int:
    return round(seconds * PS_PER_S)


def _rising(seconds: npt.NDArray[np.float64] | float, factor: float) -> list[int]:
    """Return whole picoseconds that never fall: the roofline of few experts dips by rounding of their tiles."""
    steps = np.rint(np.asarray(seconds) * factor * PS_PER_S).astype(np.int64)
    found: list[int] = np.maximum.accumulate(steps).tolist()
    return found


def _block(kv: KvFootprint, block_size: int) -> tuple[int, float]:
    """Return tokens and bytes of a block; a cache that does not grow is counted in parts of what a sequence holds."""
    if kv.global_bytes_per_token > 0.0:
        tokens = kv.block_tokens or block_size
        return tokens, tokens * kv.global_bytes_per_token
    held = kv.fixed_bytes + kv.local_bytes_per_token * kv.window_tokens
    return NO_GROWTH, max(held, 1.0) / STATE_PARTS
