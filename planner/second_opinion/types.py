"""What a reviewer is asked about a pool, what it answers, and what both come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from planner.physics.types import Architecture


class Uncovered(Exception):  # noqa: N818
    """A reviewer has nothing to say about a pool; the message is the reason, in one line."""


class Absent(Exception):  # noqa: N818
    """The library behind a reviewer cannot be imported; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Speed of one replica: time per output token and requests/s under load, time to first token of a prompt alone."""

    tpot_s: float
    requests_per_s: float
    ttft_alone_s: float


@dataclass(frozen=True, slots=True)
class Question:
    """One replica of a pool under equal requests.

    `in_flight` requests are served at once, each followed by the next; lengths are means over the traffic of the pool
    in tokens, `cached_tokens` of the input lie in the prefix cache. `chunk_tokens` is the token budget of a step.
    """

    pool: str
    architecture: Architecture
    gpu: str
    engine: str
    weights: str
    kv_cache: str
    tensor: int
    pipeline: int
    expert: int
    attention_data: int
    in_flight: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    chunk_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reviewer says; `basis` names the data behind it."""

    figures: Figures
    basis: str


class Reviewer(Protocol):
    """Another model of speed."""

    @property
    def name(self) -> str:
        """Name and version."""
        ...

    def answer(self, question: Question) -> Reply:
        """Answer a question. Raises `Uncovered`; whatever else it raises is taken as the reason for no answer."""
        ...


@dataclass(frozen=True, slots=True)
class Opinion:
    """Both figures of a pool, and what the difference would cost.

    `best` are ours in the middle of the band, `planned` the same with the margin of the spec's confidence. `theirs` is
    None where the reviewer has no answer, for `reason`. `needed` replicas would carry the pool's load if theirs were
    right, each at `usd_per_replica_hour`.
    """

    pool: str
    replicas: int
    usd_per_replica_hour: float
    question: Question | None
    best: Figures | None = None
    planned: Figures | None = None
    theirs: Figures | None = None
    basis: str = ""
    reason: str = ""
    needed: int = 0

    @property
    def covered(self) -> bool:
        """Tell whether the reviewer had an answer."""
        return self.theirs is not None

    @property
    def regret_usd_per_hour(self) -> float:
        """Cost of the replicas that are missing if theirs are right; negative where some could go. 0 if not covered."""
        return (self.needed - self.replicas) * self.usd_per_replica_hour if self.covered else 0.0


@dataclass(frozen=True, slots=True)
class Review:
    """The opinions of a reviewer on all pools of a plan, in the plan's order."""

    reviewer: str
    opinions: tuple[Opinion, ...]

    @property
    def extra_usd_per_hour(self) -> float:
        """Cost of all missing replicas if theirs are right."""
        return sum(max(o.regret_usd_per_hour, 0.0) for o in self.opinions)

    @property
    def saved_usd_per_hour(self) -> float:
        """Cost of all replicas that could go if theirs are right."""
        return sum(max(-o.regret_usd_per_hour, 0.0) for o in self.opinions)
