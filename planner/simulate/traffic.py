"""Requests of a workload over time: drawn from the distributions of its spec, or taken from a trace at another rate."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

import numpy as np
import numpy.typing as npt

from planner.candidates.hours import SECONDS_PER_HOUR
from planner.candidates.types import ResolvedWorkload
from planner.physics.lengths import Lengths
from planner.simulate.trace import Trace

DAY = (1.0,) * 24  # demand that is the same at all hours
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Scaling(StrEnum):
    """How a trace is brought to a rate: its time is compressed, or copies of it, shifted in time, are laid over each other."""

    COMPRESSED = "compressed"
    COPIES = "copies"


@dataclass(frozen=True)
class Stream:
    """Requests of one workload in order of arrival: seconds from the start, and tokens.

    The first `hit_tokens` of a prompt are cached, `shared_tokens` of them in blocks that all requests share.
    """

    workload: str
    arrival_s: Floats
    input_tokens: Integers
    output_tokens: Integers
    hit_tokens: Integers
    shared_tokens: Integers

    @property
    def size(self) -> int:
        """Number of requests."""
        return int(self.arrival_s.size)

    def take(self, keep: npt.NDArray[np.bool_]) -> Stream:
        """Return some of its requests."""
        columns = (self.input_tokens, self.output_tokens, self.hit_tokens, self.shared_tokens)
        return Stream(self.workload, self.arrival_s[keep], *(column[keep] for column in columns))


def generator(seed: int, replication: int, name: str) -> np.random.Generator:
    """Return the random numbers of one use of a seed: the same for the same name, whatever else is drawn."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, replication, zlib.crc32(name.encode())])))


def hourly_shares(workload: ResolvedWorkload) -> tuple[float, ...]:
    """Return the demand of every hour of a day or a week as a share of the peak; that of the mean where it is not hourly."""
    traffic = workload.spec.traffic
    if traffic.hourly is not None:
        return tuple(rate / max(traffic.hourly) for rate in traffic.hourly)
    mean = workload.mean_requests_per_s or workload.peak_requests_per_s
    return tuple(mean / workload.peak_requests_per_s * share for share in DAY)


def synthetic(
    workload: ResolvedWorkload,
    requests_per_s: float,
    duration_s: float,
    max_tokens: int,
    draw: np.random.Generator,
    profile: Sequence[float] = (1.0,),
) -> Stream:
    """Draw arrivals with gamma gaps of the workload's `arrival_cv2` (1: Poisson, 0: even) and independent lengths.

    The rate in equal parts of the time, over and over, is `requests_per_s` times those of a `profile`. Lengths are cut as the spec says: the prompt to `max_tokens` less one, then the answer to what is left.
    """
    traffic = workload.spec.traffic
    mean = sum(profile) / len(profile)
    arrivals = _warped(_arrivals(requests_per_s * mean, duration_s, traffic.arrival_cv2, draw), duration_s, profile)
    prompts = np.minimum(_draw_lengths(traffic.input_tokens.lengths, arrivals.size, draw), max(1, max_tokens - 1))
    answers = np.minimum(_draw_lengths(traffic.output_tokens.lengths, arrivals.size, draw), max_tokens - prompts)
    hits, shared = _spec_hits(workload, prompts, draw)
    return Stream(workload.name, arrivals, prompts, np.maximum(answers, 1), hits, shared)


def _arrivals(requests_per_s: float, duration_s: float, cv2: float, draw: np.random.Generator) -> Floats:
    if requests_per_s <= 0.0:
        return np.zeros(0)
    expected = requests_per_s * duration_s
    count = int(expected + 6.0 * np.sqrt(expected * max(cv2, 1.0)) + 10.0 * max(cv2, 1.0))
    gaps = draw.gamma(1.0 / cv2, cv2, count) if cv2 > 0.0 else np.ones(count)
    times = np.cumsum(gaps) / requests_per_s
    return np.asarray(times[times < duration_s])


def _warped(arrivals: Floats, duration_s: float, profile: Sequence[float]) -> Floats:
    """Move arrivals at an even rate to where a profile of the rate has them."""
    if len(profile) == 1:
        return arrivals
    repeats = max(1, round(duration_s / (SECONDS_PER_HOUR * len(profile))))
    rates = np.tile(np.asarray(profile), repeats)
    expected = np.concatenate([[0.0], np.cumsum(rates)]) / rates.sum() * duration_s
    return np.asarray(np.interp(arrivals, expected, np.linspace(0.0, duration_s, rates.size + 1)))


def _draw_lengths(lengths: Lengths, count: int, draw: np.random.Generator) -> Integers:
    """Draw whole lengths: the logarithm is piecewise linear in a normal variable, see `Lengths`."""
    z = draw.standard_normal(count)
    if lengths.kind == "constant":
        return np.full(count, max(1, round(lengths.mean)), dtype=np.int64)
    at = np.array([knot[0] for knot in lengths.knots])
    logs = np.array([knot[1] for knot in lengths.knots])
    found = np.interp(z, at, logs)
    found += np.minimum(z - at[0], 0.0) * lengths.first_slope + np.maximum(z - at[-1], 0.0) * lengths.last_slope
    return np.asarray(np.maximum(np.rint(np.exp(found)), 1.0), dtype=np.int64)


def _spec_hits(workload: ResolvedWorkload, prompts: Integers, draw: np.random.Generator) -> tuple[Integers, Integers]:
    """Return cached and shared tokens of prompts: a share of them finds the common prefix, or all a share of their tokens."""
    lucky = draw.random(prompts.size) < workload.shared_hit_rate
    if workload.shared_hit_rate > 0.0:
        prefix = np.where(lucky, np.minimum(int(workload.shared_tokens), prompts - 1), 0)
        return prefix, prefix
    share = workload.spec.traffic.cached_input if _caches(workload) else None
    hits = np.minimum((prompts * (share or 0.0)).astype(np.int64), prompts - 1)
    return hits, np.zeros_like(hits)


def _caches(workload: ResolvedWorkload) -> bool:
    """Tell whether its engine caches prefixes: the tokens to compute say so."""
    return float(workload.prefill_tokens @ workload.prefill_weights) < workload.mean_input_tokens


def copies_of(trace: Trace, requests_per_s: float, scaling: Scaling) -> int:
    """Return how many copies of a trace are laid over each other to reach a rate."""
    return max(1, round(requests_per_s / trace.requests_per_s)) if scaling is Scaling.COPIES else 1


def from_trace(
    workload: ResolvedWorkload,
    trace: Trace,
    requests_per_s: float,
    duration_s: float,
    scaling: Scaling,
    draw: np.random.Generator,
) -> Stream:
    """Return the requests of a trace at a mean rate, with its own lengths; prefix hits as the trace says, else the spec.

    A trace that is shorter than `duration_s` is repeated, a longer one cut. `COMPRESSED` keeps every burst, in less or more time. `COPIES` lays as many copies over each other as the rate takes, each shifted
    around the span by a random time, and compresses what is left: bursts of copies do not meet.
    """
    if trace.arrival_s is None:
        raise ValueError("a trace without arrivals")
    span = trace.arrival_s[-1] + 1.0 / trace.requests_per_s
    copies = copies_of(trace, requests_per_s, scaling)
    shifts = np.concatenate([[0.0], draw.random(copies - 1) * span])
    times = np.concatenate([(trace.arrival_s + shift) % span for shift in shifts])
    order = np.argsort(times, kind="stable")
    stretch = copies * trace.requests_per_s / requests_per_s
    repeats = max(1, ceil(duration_s / (span * stretch) - 1e-9))
    arrivals = np.concatenate([times[order] + k * span for k in range(repeats)]) * stretch
    kept = arrivals < duration_s * (1.0 + 1e-12)
    rows = np.tile(order % trace.arrival_s.size, repeats)[kept]
    prompts = trace.input_tokens[rows]
    if trace.hit_tokens is None:
        hits, shared = _spec_hits(workload, prompts, draw)
    else:
        hits = np.minimum(trace.hit_tokens[rows], prompts - 1)
        shared = np.zeros_like(hits)
    return Stream(workload.name, arrivals[kept], prompts, trace.output_tokens[rows], hits, shared)


def shares_of(
    stream: Stream,
    shares: Sequence[float],
    draw: np.random.Generator,
    then_s: float = np.inf,
    shares_then: Sequence[float] = (),
) -> list[Stream]:
    """Send each request of a stream to one of several pools, by chance in these shares, from `then_s` on in others."""
    if len(shares) == 1:
        return [stream]
    chance = draw.random(stream.size)
    pool = np.searchsorted(_edges(shares), chance, side="right")
    if sum(shares_then) > 0.0:
        later = stream.arrival_s >= then_s
        pool[later] = np.searchsorted(_edges(shares_then), chance[later], side="right")
    return [stream.take(pool == number) for number in range(len(shares))]


def _edges(shares: Sequence[float]) -> Floats:
    edges = np.cumsum(np.asarray(shares) / sum(shares))
    edges[-1] = 1.0
    return np.asarray(edges)
