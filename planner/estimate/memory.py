"""Memory of one deployment: the budget of one GPU part by part, whether it starts, and the longest sequence it can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor

from planner.estimate.deployment import Deployment, refusal
from planner.physics.memory import FractionOf, HbmBudget, Outcome, hbm_budget, weight_parts

GIB = 2.0**30


@dataclass(frozen=True)
class Fit:
    """A memory budget with what follows from it. Sizes are bytes of one GPU, the fullest of the replica.

    `weight_parts` sum to the weights before they are rounded up to whole bytes. `short_bytes` is what is missing, 0
    when it fits; `spare_bytes` is what the pool has beyond the longest sequence, negative when that does not fit.
    """

    deployment: Deployment
    budget: HbmBudget
    weight_parts: Mapping[str, float]
    outcome: Outcome
    short_bytes: float
    spare_bytes: float

    @property
    def fits(self) -> bool:
        """Tell whether the engine starts and serves one sequence of the longest length."""
        return self.outcome is Outcome.OK

    @property
    def block_tokens(self) -> int:
        """Tokens per block of the cache."""
        return self.budget.kv.block_tokens or self.deployment.engine.memory.block_size_tokens

    @property
    def blocks(self) -> int:
        """Blocks of the pool, of the size that a layer without a window takes; 0 where all cache is fixed states."""
        token = self.budget.kv.global_bytes_per_token + self.budget.kv.local_bytes_per_token
        return floor(self.budget.kv_pool_bytes / (token * self.block_tokens)) if token else 0

    def sequence_bytes(self, tokens: int) -> float:
        """Return the cache of one sequence on one GPU, in whole blocks."""
        return self.budget.kv.bytes_at(-(-tokens // self.block_tokens) * self.block_tokens)

    def sequences(self, tokens: int) -> int:
        """Return how many sequences of so many tokens the whole replica holds at once.

        Those of the longest length are counted as the engine does when it admits them: with a batch of new tokens
        beside every window.
        """
        longest = tokens >= self.deployment.max_model_len
        need = self.budget.longest_bytes if longest else self.sequence_bytes(tokens)
        per_group = floor(self.budget.kv_pool_bytes / need * (1.0 + 1e-12)) if need > 0.0 else 0
        return per_group * self.deployment.layout.attention_data


def hbm(deployment: Deployment) -> HbmBudget:
    """Return the memory budget of one GPU. Raises `UnknownArchitecture`."""
    d = deployment
    return hbm_budget(
        d.architecture,
        d.device,
        d.layout,
        d.weights,
        d.kv,
        d.engine.memory,
        d.max_num_seqs,
        d.max_num_batched_tokens,
        d.max_model_len,
        d.utilization,
        d.chunks,
        d.extras,
        d.images + d.videos,
    )


def fit(deployment: Deployment) -> Fit:
    """Return the memory budget of a deployment and how its start-up ends. Raises `UnknownArchitecture`."""
    budget = hbm(deployment)
    outcome, short = budget.outcome, budget.shortfall_bytes
    need = deployment.stated_slots * budget.longest_bytes
    if outcome is Outcome.OK and budget.kv_pool_bytes < need:
        outcome, short = Outcome.KV_TOO_SMALL, need - budget.kv_pool_bytes
    short = 0.0 if outcome is Outcome.OK else max(short, 1.0)
    spare = budget.kv_pool_bytes - need if budget.kv_pool_bytes > 0.0 else -short
    return Fit(deployment, budget, _weight_parts(deployment), outcome, short, spare)


def fits(deployment: Deployment) -> bool:
    """Tell whether a deployment starts and serves one longest sequence."""
    budget = hbm(deployment)
    return budget.fits and budget.kv_pool_bytes >= deployment.stated_slots * budget.longest_bytes


def longest_context(deployment: Deployment) -> int:
    """Return the longest `max_model_len` with which the deployment fits, up to the model's own; 0 when none does.

    A longer sequence needs more cache and, where whole prompts are one step, a larger step. Where the engine turns
    chunked prefill on from some length, lengths from there on are looked at first.
    """

    def holds(tokens: int) -> bool:
        longer = deployment.changed(max_model_len=tokens)
        return refusal(longer) is None and fits(longer)

    own = deployment.architecture.max_position
    switch = deployment.engine.memory.chunked_from_tokens if deployment.chunked_prefill is None else 0
    for low, high in ((max(switch, 1), own), (1, min(switch - 1, own))):
        found = largest(low, high, holds)
        if found:
            return found
    return 0


def largest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the largest whole number from `low` to `high` for which `holds` is true, 0 when it is false at `low`.

    `holds` must not become true again once it is false.
    """
    if low > high or not holds(low):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def budget_share(fit: Fit) -> float:
    """Return the bytes of one GPU that the engine may use for itself: its fraction, of what it is a fraction of."""
    d, budget = fit.deployment, fit.budget
    match d.engine.memory.fraction_of:
        case FractionOf.TOTAL | FractionOf.STATIC:
            return d.utilization * budget.usable_bytes
        case FractionOf.FREE_AFTER_LOAD | FractionOf.NONE:
            return budget.usable_bytes


def _weight_parts(deployment: Deployment) -> dict[str, float]:
    d = deployment
    parts = weight_parts(d.architecture, d.layout, d.weights, d.engine.memory.mla_absorbed)
    return {
        "attention": parts.attention,
        "dense": parts.dense,
        "experts": parts.experts,
        "vocabulary": parts.vocabulary,
        "norms_and_routers": parts.small,
        "rotary": parts.rotary,
        "vision": parts.vision,
        "adapters": d.lora_bytes,
        "draft": d.draft_extras.weights_bytes,
    }
