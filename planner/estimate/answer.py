"""The answer about one deployment: its memory, its speed, and what to say about both. Plain values, no numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.estimate.deployment import DEFAULT_CONFIDENCE, Deployment
from planner.estimate.memory import Fit
from planner.estimate.remedies import Remedy
from planner.physics.bands import OwnRows, Provenance
from planner.plan.levers import LEVERS

if TYPE_CHECKING:
    from planner.plan.schema import Resource


class LoadKind(StrEnum):
    """How a deployment is loaded.

    `batch`: one decode step of so many sequences. `concurrency`: so many requests in flight, each followed by the
    next. `rate`: requests that arrive on their own. `max`: the largest such rate that one replica can bear.
    """

    BATCH = "batch"
    CONCURRENCY = "concurrency"
    RATE = "rate"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Load:
    """A load and its size: sequences, or requests/s. `limits_s` bound latency, for `max` only."""

    kind: LoadKind = LoadKind.BATCH
    value: float = 1.0
    confidence: float = DEFAULT_CONFIDENCE
    limits_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Times:
    """Latency of requests in seconds, median and 95th percentile, and tokens generated per second."""

    ttft_p50_s: float
    ttft_p95_s: float
    tpot_p50_s: float
    tpot_p95_s: float
    output_tokens_per_s: float


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure times are: provenance class, the factors that a confidence asks for, and times inside the 80 % band.

    `low` and `high` are the ends within which 80 % of measured deployments of the class lie, `best` is in the middle.
    A side is None where the load is more than such a replica can bear. `own` are the user's own measurements that decide.
    """

    provenance: Provenance
    own: OwnRows | None
    confidence: float
    factor: float
    ttft_factor: float
    p80: float
    ttft_p80: float
    low: Times | None
    best: Times | None
    high: Times | None


@dataclass(frozen=True, slots=True)
class Speed:
    """What a deployment does under a load; all times hold with the confidence of `sureness`.

    `batch` sequences are in decode on average, for one step no more than the replica runs. `step_parts_s` is a step at that batch with the prompt tokens that come
    with it; the parts sum to `step_s`. `times` is None where the load is more than the replica can bear, that is
    above `most_requests_per_s`. `held` is how many such sequences the KV cache holds, `waiting_s` how long a request
    waits for room in it. `step_bytes` and `step_flops` are what one GPU streams and computes in the step. `limited_by` is the
    scarce resource, and `because` says of what.
    """

    load: Load
    input_tokens: int
    output_tokens: int
    batch: float
    held: float
    step_parts_s: Mapping[str, float]
    step_s: float
    resource_s: Mapping[str, float]
    step_bytes: float
    step_flops: float
    requests_per_s: float | None
    most_requests_per_s: float | None
    waiting_s: float
    times: Times | None
    sureness: Sureness
    regime: str
    limited_by: Resource
    because: str
    engine_class: str
    notes: Sequence[str] = ()

    @property
    def lever(self) -> str:
        """What buys the scarce resource back."""
        return LEVERS[self.limited_by]


class Search(StrEnum):
    """What can be searched for."""

    MAX_CONCURRENCY = "max-concurrency"
    MAX_MODEL_LEN = "max-model-len"
    MIN_TP = "min-tp"
    MAX_RATE = "max-rate"


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of a search: the value, None when there is none, what it is, and what was tried on the way.

    Where no rate holds the limits, `alone` is what a lone request takes and `limited_by` what that consists of.
    """

    search: Search
    value: float | None
    sentence: str
    tried: Sequence[Mapping[str, object]] = ()
    alone: Times | None = None
    limited_by: Resource | None = None


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something the answer rests on that was not said: a key, its value, and where it comes from."""

    key: str
    value: str
    source: str


@dataclass(frozen=True)
class Estimate:
    """Everything known about one deployment. `speed` is None where it does not fit, and where no rate was found."""

    fit: Fit
    longest_context: int
    remedies: Sequence[Remedy]
    speed: Speed | None
    warnings: Sequence[str]
    notes: Sequence[str]
    assumptions: Sequence[Assumption]
    found: Found | None = None

    @property
    def deployment(self) -> Deployment:
        """The deployment that the answer is about."""
        return self.fit.deployment

    @property
    def limited_by(self) -> Resource:
        """The scarce resource: the memory where there is no room."""
        if self.speed is not None:
            return self.speed.limited_by
        return (self.found and self.found.limited_by) or "capacity"
