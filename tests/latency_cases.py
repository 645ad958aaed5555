"""Reference pairs for the tests of the latency closed form: one 8B model on one H100, lognormal lengths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from simulation_oracle import StepTable, latency, sample, simulate
from speed_cases import H100, LLAMA_8B, MIXTRAL_8X7B, constants

from planner.physics.latency import Pairs, saturation
from planner.physics.speed import coefficients
from planner.physics.step import StepCoefficients, stack
from planner.physics.types import Architecture, Layout

Array = npt.NDArray[np.float64]

POINTS = 64


@dataclass(frozen=True)
class Case:
    """One replica pool under one workload; lengths are lognormal with the coefficient of variation `spread`."""

    prompt: float = 1000.0
    output: float = 200.0
    spread: float = 1.0
    replicas: int = 1
    slots: int = 128
    budget: int = 2048
    chunked: bool = True
    arrival_cv2: float = 1.0
    kv_slots: float = np.inf


@cache
def dense() -> StepCoefficients:
    """Return the step coefficients of the 8B model on one GPU in bf16."""
    return _coefficients(LLAMA_8B, Layout())


@cache
def experts() -> StepCoefficients:
    """Return the step coefficients of the mixture-of-experts model on two GPUs in bf16."""
    return _coefficients(MIXTRAL_8X7B, Layout(tensor=2))


def _coefficients(arch: Architecture, layout: Layout) -> StepCoefficients:
    return coefficients(arch, H100, layout, "bf16", "bf16", "vllm_new", constants())


def lengths(mean: float, spread: float, points: int = POINTS) -> Array:
    """Return equally likely lengths of a lognormal with this mean and coefficient of variation."""
    sigma = np.sqrt(np.log1p(spread**2))
    normal = np.array([NormalDist().inv_cdf((k + 0.5) / points) for k in range(points)])
    return np.maximum(np.rint(np.exp(np.log(mean) - 0.5 * sigma**2 + sigma * normal)), 1.0)


def pairs(*cases: Case, step: StepCoefficients | None = None) -> Pairs:
    """Return the cases as pairs with the given scalar step coefficients (the 8B model's by default)."""

    def column(name: str) -> Array:
        return np.array([float(getattr(case, name)) for case in cases])

    prompt = np.stack([lengths(case.prompt, case.spread) for case in cases])
    output = np.stack([lengths(case.output, case.spread if case.output > 1 else 0.0) for case in cases])
    ones = np.ones(len(cases))
    return Pairs(
        step=stack([step or dense()] * len(cases)),
        input_tokens=prompt,
        prefill_tokens=prompt,
        prefill_weights=np.full(prompt.shape, 1.0 / POINTS),
        output_tokens=output,
        arrival_cv2=column("arrival_cv2"),
        slots=column("slots"),
        kv_slots=column("kv_slots"),
        token_budget=column("budget"),
        chunked=np.array([case.chunked for case in cases]),
        replicas=column("replicas"),
        step_factor=ones,
        ttft_factor=ones,
        fixed_ttft_s=np.zeros(len(cases)),
    )


@cache
def table(slots: int, prompt: float, spread: float) -> StepTable:
    """Return the simulator's step times of the 8B model."""
    prompts = lengths(prompt, spread)
    attended = float((prompts**2).sum() / prompts.sum())
    return StepTable.tabulate(dense(), slots, max(2048, int(prompts.max())), attended)


def simulated(case: Case, requests_per_s: float, metric: str, p: float, count: int, seed: int) -> float:
    """Return the `p` quantile of a metric that the simulator measures at `requests_per_s` per replica, seconds."""
    output = lengths(case.output, case.spread if case.output > 1 else 0.0)
    drawn = sample(seed, count, lengths(case.prompt, case.spread), output, case.arrival_cv2)
    requests = drawn.at_rate(requests_per_s * case.replicas)
    served = simulate(
        table(case.slots, case.prompt, case.spread),
        requests,
        slots=case.slots,
        budget=case.budget,
        replicas=case.replicas,
        chunked=case.chunked,
    )
    return latency(requests, served, metric, p)


def achievable(case: Case, metric: str, p: float, limit_s: float, count: int, seed: int, steps: int = 6) -> float:
    """Return the largest rate per replica, requests/s, at which the simulator meets the limit, within 2^-steps."""
    top = float(saturation(pairs(case)).requests_per_s[0])
    low, high = 0.0, 1.1 * top
    for _ in range(steps):
        middle = 0.5 * (low + high)
        if simulated(case, middle, metric, p, count, seed) <= limit_s:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
