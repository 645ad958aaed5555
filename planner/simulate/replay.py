"""Replay the traffic of a pool on its engines, once per replication."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.candidates.types import ResolvedWorkload
from planner.simulate.costs import PoolModel
from planner.simulate.pool import Failure, Replay, replay
from planner.simulate.traffic import Floats, Integers, Stream
from planner.simulate.types import PS_PER_S, Occupancy, Requests, Router


@dataclass(frozen=True)
class PoolRun:
    """What one replication of a pool did: columns over requests in order of arrival, seconds.

    `workload` is the place of a request's workload in `workloads`. Requests that no engine can hold are counted in `refused`, by
    workload, and are in no column, nor are the `lost` ones of a pool without engines. `first_s` and `finish_s` are those of the
    engine.
    """

    workloads: tuple[str, ...]
    workload: Integers
    arrival_s: Floats
    admitted_s: Floats
    first_s: Floats
    finish_s: Floats
    input_tokens: Integers
    output_tokens: Integers
    hit_tokens: Integers
    preemptions: Integers
    refused: Mapping[str, int]
    lost: int
    occupancy: tuple[Occupancy, ...]
    blocks: int
    slots: int
    digest: str

    @property
    def span_s(self) -> float:
        """Time from the first arrival to the last."""
        return float(self.arrival_s[-1] - self.arrival_s[0]) if self.arrival_s.size else 0.0


def run_pool(
    pool: PoolModel,
    workloads: Mapping[str, ResolvedWorkload],
    streams: Sequence[Stream],
    max_tokens: int,
    router: Router,
    fail_at_s: float | None = None,
    lost: int = 1,
) -> PoolRun:
    """Serve the requests of some workloads on the engines of a pool; with `fail_at_s`, the first `lost` engines die then.

    The prefix that requests of a workload share is in the cache of every engine from the start.
    """
    block = pool.rules.block_tokens
    prefixes = [round(workloads[s.workload].shared_tokens) for s in streams if s.shared_tokens.any()]
    shared = pool.groups * sum(-(-tokens // block) for tokens in prefixes)
    rules = replace(pool.rules, blocks=max(0, pool.rules.blocks - shared))
    kept, refused = zip(*(_that_fit(s, pool, rules.blocks, max_tokens) for s in streams), strict=True)
    names = tuple(s.workload for s in streams)
    which = np.concatenate([np.full(s.size, n, dtype=np.int64) for n, s in enumerate(kept)])
    arrival_s = np.concatenate([s.arrival_s for s in kept])
    order = np.argsort(arrival_s, kind="stable")

    def column(name: str) -> Integers:
        return np.concatenate([getattr(s, name) for s in kept])[order]

    inputs, outputs, held = column("input_tokens"), column("output_tokens"), column("shared_tokens")
    requests = Requests(
        arrival_ps=_ps(arrival_s[order]),
        input_tokens=inputs.tolist(),
        output_tokens=outputs.tolist(),
        hit_tokens=column("hit_tokens").tolist(),
        shared_tokens=held.tolist(),
        reserved_blocks=_reserved(pool, inputs + outputs - 1),
    )
    fail = None if fail_at_s is None else Failure(round(fail_at_s * PS_PER_S), tuple(range(lost)))
    done: Replay = replay(pool.costs, rules, requests, pool.engines, router, fail)
    served = done.served
    ended = np.array(served.finish_ps, dtype=np.int64) >= 0
    return PoolRun(
        workloads=names,
        workload=which[order][ended],
        arrival_s=arrival_s[order][ended],
        admitted_s=_seconds(served.admitted_ps)[ended],
        first_s=_seconds(served.first_ps)[ended],
        finish_s=_seconds(served.finish_ps)[ended],
        input_tokens=inputs[ended],
        output_tokens=outputs[ended],
        hit_tokens=column("hit_tokens")[ended],
        preemptions=np.array(served.preemptions, dtype=np.int64)[ended],
        refused=dict(zip(names, refused, strict=True)),
        lost=int((~ended).sum()),
        occupancy=done.occupancy,
        blocks=rules.blocks,
        slots=rules.slots,
        digest=hashlib.sha256(np.array(served.finish_ps, dtype="<i8").tobytes()).hexdigest(),
    )


def _that_fit(stream: Stream, pool: PoolModel, blocks: int, max_tokens: int) -> tuple[Stream, int]:
    """Return the requests that an empty engine holds, and how many it does not."""
    tokens = stream.input_tokens + stream.output_tokens
    held = tokens - 1
    own = -(-(held - stream.shared_tokens) // pool.rules.block_tokens)
    fits: npt.NDArray[np.bool_] = (tokens <= max_tokens) & (own + np.array(_reserved(pool, held)) <= blocks)
    return stream.take(fits), int((~fits).sum())


def _reserved(pool: PoolModel, tokens: Integers) -> list[int]:
    if not pool.has_reserve:
        return [0] * int(tokens.size)
    sizes, at = np.unique(tokens, return_inverse=True)
    held = np.array([pool.reserved_blocks(size) for size in sizes.tolist()], dtype=np.int64)
    found: list[int] = held[at].tolist() if sizes.size else []
    return found


def _ps(seconds: Floats) -> list[int]:
    found: list[int] = np.rint(seconds * PS_PER_S).astype(np.int64).tolist()
    return found


def _seconds(ps: list[int]) -> Floats:
    return np.array(ps, dtype=np.float64) / PS_PER_S
