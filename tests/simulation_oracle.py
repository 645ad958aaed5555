"""A small simulator of continuous batching, step by step: the truth that the latency closed form is tested against.

Each replica serves its queue in order of arrival. At a step boundary the running sequences take one token each, then
prompts fill what is left of the token budget (chunked), or whole prompts run in a step of their own (not chunked).
Every step takes what the step-time model says for its batch, context and prompt tokens. No step is aggregated or
skipped; memory never runs out.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from planner.physics.step import StepCoefficients, step_s

Array = npt.NDArray[np.float64]

_CHUNK_GRID = 32


@dataclass(frozen=True)
class StepTable:
    """Step times of one shape, tabulated once: by batch, and by batch and prompt tokens; the context enters linearly."""

    decode_s: list[float]
    context_s: float
    prompt_s: list[list[float]]

    @classmethod
    def tabulate(cls, step: StepCoefficients, slots: int, budget: int, prompt_tokens: float) -> StepTable:
        """Tabulate scalar coefficients for up to `slots` sequences and `budget` prompt tokens."""
        batch = np.arange(slots + 1, dtype=np.float64)
        empty = np.asarray(step_s(step, np.maximum(batch, 1e-6), batch, 0.0))
        context_s = float(np.asarray(step_s(step, 1.0, 1.0, 1000.0)) - np.asarray(step_s(step, 1.0, 1.0, 0.0))) / 1000.0
        tokens = np.arange(0.0, budget + 2 * _CHUNK_GRID, _CHUNK_GRID)
        mixed = step_s(step, batch[:, None] + tokens + 1e-6, batch[:, None], 0.0, tokens, prompt_tokens)
        added = step.prefill_factor * (np.asarray(mixed) - empty[:, None])
        # A prompt without company pays its factor on the whole step.
        added[0] = step.prefill_factor * np.asarray(mixed)[0] - empty[0]
        added[:, 0] = 0.0
        return cls(empty.tolist(), context_s, np.maximum(added, 0.0).tolist())

    def seconds(self, batch: int, context: int, prompt: int) -> float:
        """Return the duration of a step of `batch` sequences with summed context `context` and `prompt` prompt tokens."""
        base = self.decode_s[batch] + self.context_s * context
        if not prompt:
            return base
        row = self.prompt_s[batch]
        cell, rest = divmod(prompt, _CHUNK_GRID)
        return base + row[cell] + (row[cell + 1] - row[cell]) * (rest / _CHUNK_GRID)


@dataclass(frozen=True)
class Requests:
    """Arrival times in seconds, prompt tokens and output tokens, in order of arrival."""

    arrival_s: Array
    prompt_tokens: list[int]
    output_tokens: list[int]

    def at_rate(self, requests_per_s: float) -> Requests:
        """Return the same requests with the unit-rate clock of `arrival_s` run at `requests_per_s`."""
        return Requests(self.arrival_s / requests_per_s, self.prompt_tokens, self.output_tokens)


@dataclass(frozen=True)
class Served:
    """First-token and finish times of each request, seconds, and every (gap, sequences) of a step that decoded."""

    first_s: Array
    finish_s: Array
    gaps: list[tuple[float, int]]


@dataclass
class _Replica:
    table: StepTable
    slots: int
    budget: int
    chunked: bool
    clock: float = 0.0
    step: int = 0
    running: int = 0
    context: int = 0
    waiting: deque[list[int]] = field(default_factory=deque)
    partial: list[int] | None = None
    finishing: list[tuple[int, int, int]] = field(default_factory=list)
    stall_s: float = 0.0

    @property
    def outstanding(self) -> int:
        return self.running + len(self.waiting) + (self.partial is not None)

    def run_until(self, time_s: float, requests: Requests, served: Served) -> None:
        """Take steps until one ends at or after `time_s`; an idle replica waits there."""
        while self.clock < time_s and self.outstanding:
            self._one_step(requests, served)
        if not self.outstanding:
            self.clock = max(self.clock, time_s)

    def _one_step(self, requests: Requests, served: Served) -> None:
        prompt, done = self._admit_mixed() if self.chunked else self._admit_whole()
        decoding = self.running if self.chunked or not prompt else 0
        duration = self.table.seconds(decoding, self.context if decoding else 0, prompt)
        self.clock += duration
        self.stall_s += duration
        if decoding:
            served.gaps.append((self.stall_s, decoding))
            self.step += 1
            self.context += decoding
            self._finish(served)
        if decoding or not self.running:
            self.stall_s = 0.0
        for request in done:
            self._start(request, requests, served)

    def _admit_mixed(self) -> tuple[int, list[int]]:
        left, used, done = self.budget - self.running, 0, []
        occupied = self.running
        while left > 0 and (self.partial is not None or (self.waiting and occupied < self.slots)):
            current = self.partial if self.partial is not None else self.waiting.popleft()
            chunk = min(left, current[1])
            current[1] -= chunk
            left, used, occupied = left - chunk, used + chunk, occupied + 1
            self.partial = current if current[1] else None
            if not current[1]:
                done.append(current[0])
        return used, done

    def _admit_whole(self) -> tuple[int, list[int]]:
        used, done = 0, []
        while self.waiting and self.running + len(done) < self.slots:
            if done and used + self.waiting[0][1] > self.budget:
                break
            request, tokens = self.waiting.popleft()
            used += tokens
            done.append(request)
        return used, done

    def _start(self, request: int, requests: Requests, served: Served) -> None:
        served.first_s[request] = self.clock
        decode_steps = requests.output_tokens[request] - 1
        if decode_steps == 0:
            served.finish_s[request] = self.clock
            return
        prompt = requests.prompt_tokens[request]
        self.running += 1
        self.context += prompt + 1
        heapq.heappush(self.finishing, (self.step + decode_steps, request, prompt + 1 + decode_steps))

    def _finish(self, served: Served) -> None:
        while self.finishing and self.finishing[0][0] <= self.step:
            _, request, context = heapq.heappop(self.finishing)
            served.finish_s[request] = self.clock
            self.running -= 1
            self.context -= context


def simulate(
    table: StepTable, requests: Requests, *, slots: int, budget: int, replicas: int = 1, chunked: bool = True
) -> Served:
    """Serve all requests on `replicas`, each going to the one with the fewest requests (ties: the first)."""
    pool = [_Replica(table, slots, budget, chunked) for _ in range(replicas)]
    count = len(requests.prompt_tokens)
    served = Served(np.zeros(count), np.zeros(count), [])
    for number, arrival in enumerate(requests.arrival_s.tolist()):
        for replica in pool:
            replica.run_until(arrival, requests, served)
        chosen = min(pool, key=lambda replica: replica.outstanding)
        chosen.waiting.append([number, requests.prompt_tokens[number]])
    for replica in pool:
        replica.run_until(np.inf, requests, served)
    return served


def sample(seed: int, count: int, prompt: Array, output: Array, arrival_cv2: float = 1.0) -> Requests:
    """Draw `count` requests from equally likely lengths, with gamma distributed gaps of mean 1."""
    rng = np.random.default_rng(seed)
    gaps = rng.gamma(1.0 / arrival_cv2, arrival_cv2, count)
    return Requests(
        np.cumsum(gaps),
        np.maximum(np.rint(rng.choice(prompt, count)), 1).astype(int).tolist(),
        np.maximum(np.rint(rng.choice(output, count)), 1).astype(int).tolist(),
    )


def latency(requests: Requests, served: Served, metric: str, p: float, warm_up: float = 0.15) -> float:
    """Return the `p` quantile of a metric in seconds over the requests after the first share `warm_up`."""
    if metric == "itl":
        gaps = np.array(served.gaps[int(warm_up * len(served.gaps)) :])
        order = np.argsort(gaps[:, 0])
        weight = np.cumsum(gaps[order, 1])
        return float(gaps[order, 0][np.searchsorted(weight, p * weight[-1])])
    first = served.first_s - requests.arrival_s
    whole = served.finish_s - requests.arrival_s
    steps = np.asarray(requests.output_tokens) - 1
    values = {"ttft": first, "e2e": whole, "tpot": (whole - first) / np.maximum(steps, 1)}[metric]
    kept = np.arange(len(values)) >= warm_up * len(values)
    if metric == "tpot":
        kept &= steps > 0
    return float(np.quantile(values[kept], p))
