"""What a pool is short of, and the lever that buys it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.candidates.types import ResolvedWorkload
    from planner.plan.assess import PoolState
    from planner.plan.schema import Resource

PROMPT_SHARE_OF_TTFT = 0.5  # above this share of the time, the prompt's own work is the cause and not the queue
PROMPT_SHARE_OF_TPOT = 0.5  # a step without prompts below this share of the time: prompts of others are the cause
NEAR = 0.9  # a row or limit used beyond this is what holds the pool back

LEVERS: dict[Resource, str] = {
    "capacity": "HBM holds no more sequences: narrower KV format, narrower weights, more GPUs per replica, or shorter contexts",
    "bandwidth": "each step streams weights and KV: narrower weights or KV, a larger batch (looser TPOT), or more bandwidth",
    "compute": "prompt and GEMM work: more FLOP/s, 8-bit weights, prefix caching, or fewer prompt tokens",
    "interconnect": "collectives between GPUs: less tensor parallelism, or faster links",
    "overhead": "fixed time per step: a larger batch, a newer engine, or fewer layers per GPU",
    "queueing": "waiting for a turn: more or smoother replicas (pooling), less burst, or a looser TTFT",
}


def limited_by(state: PoolState, workloads: Mapping[str, ResolvedWorkload], hbm_load: float) -> Resource:
    """Name the scarce resource: KV room if that row is the fullest, else what the latency closest to its limit consists of.

    Without limits it is what the mean step consists of.
    """
    ratio, key, time_s = tightest(state, workloads)
    if hbm_load >= NEAR and hbm_load >= ratio:
        return "capacity"
    if key.startswith("ttft"):
        return "compute" if state.prompt_s > PROMPT_SHARE_OF_TTFT * time_s else "queueing"
    if key.startswith(("tpot", "itl")) and state.decode_step_s < PROMPT_SHARE_OF_TPOT * time_s:
        return "compute"
    return slowest_part(state)


def tightest(state: PoolState, workloads: Mapping[str, ResolvedWorkload]) -> tuple[float, str, float]:
    """Return the latency closest to its limit: its share of the limit, its key, and its predicted seconds."""
    return max(
        ((seconds / workloads[w].spec.slo[key], key, seconds) for (w, key), seconds in state.latency_s.items()),
        default=(0.0, "", 0.0),
    )


def slowest_part(state: PoolState) -> Resource:
    """Return the resource that the mean step spends most of its time on."""
    order: tuple[Resource, ...] = ("bandwidth", "compute", "interconnect", "overhead")
    return max(order, key=lambda name: state.resource_s[name])
