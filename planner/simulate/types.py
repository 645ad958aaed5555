"""What an engine is given and what comes out: costs of its steps, its rules, requests and what became of them.

Times are whole picoseconds, so that a jump over many steps ends exactly where the steps would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, log

PS_PER_S = 1_000_000_000_000


class Batching(StrEnum):
    """How prompts and answers share the steps of an engine.

    `chunked`: prompts are cut so that they fit beside the answers. `prompts_first`: whole prompts run in steps of their own
    before any answer goes on. `static`: a batch is padded to its longest request and replaced when its last one is done.
    """

    CHUNKED = "chunked"
    PROMPTS_FIRST = "prompts_first"
    STATIC = "static"


class Router(StrEnum):
    """Which engine of a pool gets the next request."""

    ROUND_ROBIN = "round_robin"
    LEAST_OUTSTANDING = "least_outstanding"
    SHORTEST_KV = "shortest_kv"


@dataclass(frozen=True)
class StepCosts:
    """Durations of the parts of a step, ps.

    A step of `B` sequences that decode, whose contexts sum to `S` (each at most `window_tokens`: `S_w`), takes
    `decode_ps[B] + context_ps S + local_context_ps S_w`. Beside them `Q` prompt tokens add
    `prompt_ps[B + Q] - prompt_ps[B]`; in a step of their own they take `alone_ps[Q]`. Each pair of a prompt token with a
    token at or before it costs `attended_ps`, and `local_attended_ps` for those within the window.
    """

    decode_ps: Sequence[int]
    prompt_ps: Sequence[int]
    alone_ps: Sequence[int]
    context_ps: int
    attended_ps: int
    local_context_ps: int = 0
    local_attended_ps: int = 0
    window_tokens: int = 0


@dataclass(frozen=True)
class EngineRules:
    """How one engine batches: sequences at once, tokens a step, blocks of KV cache and how many of them stay free.

    `counts_gaps` asks for the times between tokens.
    """

    batching: Batching
    slots: int
    token_budget: int
    blocks: int
    watermark_blocks: int
    block_tokens: int = 16
    counts_gaps: bool = False


@dataclass(frozen=True)
class Requests:
    """Requests in order of arrival, columns of equal length.

    The first `hit_tokens` (fewer than `input_tokens`) of a prompt are cached: they are not computed. The first
    `shared_tokens` (at most the hits) lie in blocks that all requests share. `reserved_blocks` are held from admission to the
    end beside those of the context.
    """

    arrival_ps: list[int]
    input_tokens: list[int]
    output_tokens: list[int]
    hit_tokens: list[int]
    shared_tokens: list[int]
    reserved_blocks: list[int]

    def __len__(self) -> int:
        return len(self.arrival_ps)


@dataclass
class Served:
    """What became of requests, by request: admission (the first), first token and end in ps; -1 where it never came."""

    admitted_ps: list[int]
    first_ps: list[int]
    finish_ps: list[int]
    preemptions: list[int]
    engine: list[int]

    @classmethod
    def none_of(cls, count: int) -> Served:
        """Return columns for `count` requests of which nothing is known."""
        return cls([-1] * count, [-1] * count, [-1] * count, [0] * count, [-1] * count)


@dataclass
class Occupancy:
    """Sums over the time in which an engine works, ps times what is held: for means over time.

    `gaps` counts tokens by the time since the one before, in bins of equal ratio, see `gap_bin`.
    """

    busy_ps: int = 0
    batch_ps: int = 0
    blocks_ps: int = 0
    most_blocks: int = 0
    steps: int = 0
    decoded_tokens: int = 0
    plans: int = 0
    gaps: Counter[int] = field(default_factory=Counter)


BINS_PER_E = 200  # of gaps: bins half a percent wide


def gap_bin(gap_ps: int) -> int:
    """Return the bin of a time between two tokens, ps."""
    return int(log(gap_ps) * BINS_PER_E) if gap_ps > 1 else 0


def longest_in_bin(number: int) -> float:
    """Return the longest time of a bin, ps."""
    return exp((number + 1) / BINS_PER_E)
