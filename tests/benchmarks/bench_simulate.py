"""Replays: requests per CPU second against step-by-step readings, and how plans of random specs fare in them.

    python -m tests.benchmarks.bench_simulate speed [--trace traffic.csv]
    python -m tests.benchmarks.bench_simulate plans --count 100

`speed` replays a trace (default: the ten minutes of Azure in specs/traces, over and over) on an 8B model on one H100, with jumps, with
the same engine held to single steps, and with the step-by-step reading of the suite. `plans` plans random specs without
certificate and replays them; then certifies them, and counts the replicas that a pool has more than the fewest that pass.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import yaml

from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.physics.constants import SpeedConstants
from planner.pipeline import Options, make_plan, prepare, replayable
from planner.plan.assess import PoolLoad
from planner.plan.schema import Plan
from planner.simulate.costs import pool_model
from planner.simulate.engine import Engine
from planner.simulate.fleet import Settings, replay_fleet
from planner.simulate.planned import loads_of
from planner.simulate.pool import replay
from planner.simulate.run import replay_plan
from planner.simulate.trace import read_trace
from planner.simulate.types import PS_PER_S, EngineRules, Requests, Router, StepCosts
from planner.spec import load_spec

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "simulate"))
from naive import replay_by_steps  # noqa: E402

SAMPLE = ROOT / "specs" / "traces" / "azure2023_conv_10min.csv"
REPEATS = 4
LOADS = (0.5, 0.8, 0.95)
SLOTS, BUDGET = 128, 2048
EIGHT_B = """\
version: 1
fleet: speed
models: {chat: {use: llama-3.1-8b, weights: [bf16], kv_cache: [bf16], max_model_len: 16k,
  engine: {max_num_batched_tokens: 2048, max_num_seqs: 128}, parallelism: {tensor: [1]}}}
workloads: {chat: {model: chat, traffic: {rate: 5 req/s, input_tokens: 1155, output_tokens: 211}}}
supply: {offers: [{provider: aws, region: us-east-1, gpus: [H100-SXM-80GB]}]}
"""


def engine_of(text: str) -> tuple[StepCosts, EngineRules]:
    """Return the engine of the only pool of a spec, with 128 slots."""
    plan, table, constants = planned(text)
    load = replace(loads_of(plan, table)[0], max_num_seqs=SLOTS)
    made = pool_model(table.models[load.shape.model], load, constants, BUDGET)
    return made.costs, made.rules


def planned(text: str, certify: Settings | None = None) -> tuple[Plan, CandidateTable, SpeedConstants]:
    """Plan a spec, and return what it takes to replay the plan."""
    prepared = prepare(load_spec(text, "bench.yaml"), Catalog.open())
    plan = make_plan(prepared, Options(certify=certify))
    return plan, *replayable(prepared, plan)


def timed(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def speed(path: Path) -> None:
    """Print requests per CPU second by load and number of engines."""
    trace = read_trace(path)
    costs, rules = engine_of(EIGHT_B)
    assert trace.arrival_s is not None
    most = saturation(costs, rules, trace.input_tokens, trace.output_tokens)
    print(f"{path.name}: {trace.rows:,} requests, {REPEATS} times over; one engine ends {most:.1f} req/s when all wait")
    print(
        f"{'load':>6} {'engines':>8} {'jump req/s':>11} {'events/req':>11} {'steps/req':>10} {'step req/s':>11} {'naive':>8}"
    )
    for load in LOADS:
        for engines in (1, 16):
            requests = repeated(trace.arrival_s, trace.input_tokens, trace.output_tokens, load * most * engines)
            count = len(requests)
            seen = []
            jumping = timed(
                lambda q=requests, n=engines, s=seen: s.append(replay(costs, rules, q, n, Router.LEAST_OUTSTANDING))
            )
            done = seen[0]
            with mock.patch.object(Engine, "_most_steps", return_value=1):
                stepping = timed(lambda q=requests, n=engines: replay(costs, rules, q, n, Router.LEAST_OUTSTANDING))
            short = head(requests, min(count, 3000))
            naive = timed(lambda q=short, n=engines: replay_by_steps(costs, rules, q, n, Router.LEAST_OUTSTANDING))
            plans, steps = sum(o.plans for o in done.occupancy), sum(o.steps for o in done.occupancy)
            print(
                f"{load:6.2f} {engines:8} {count / jumping:11,.0f} {plans / count:11.2f} {steps / count:10.2f} "
                f"{count / stepping:11,.0f} {len(short) / naive:8,.0f}"
            )


def saturation(costs: StepCosts, rules: EngineRules, prompts: np.ndarray, answers: np.ndarray) -> float:
    """Return requests/s of one engine that has all requests from the start."""
    requests = repeated(np.zeros(prompts.size), prompts, answers, 1.0)
    done = replay(costs, rules, replace(requests, arrival_ps=[0] * len(requests)), 1, Router.ROUND_ROBIN)
    return len(requests) / (max(done.served.finish_ps) / PS_PER_S)


def repeated(arrival_s: np.ndarray, prompts: np.ndarray, answers: np.ndarray, rate: float) -> Requests:
    span = float(arrival_s[-1]) + 1.0 if arrival_s[-1] > 0 else 1.0
    whole = np.concatenate([arrival_s + k * span for k in range(REPEATS)])
    scaled = whole * (whole.size / (REPEATS * span) / rate)
    nothing = [0] * whole.size
    return Requests(
        np.rint(scaled * PS_PER_S).astype(np.int64).tolist(),
        np.tile(prompts, REPEATS).tolist(),
        np.tile(answers, REPEATS).tolist(),
        nothing,
        nothing,
        nothing,
    )


def head(requests: Requests, count: int) -> Requests:
    return Requests(*(getattr(requests, name)[:count] for name in Requests.__dataclass_fields__))


MODELS = ("llama-3.1-8b", "qwen3-32b", "llama-3.3-70b", "gpt-oss-20b")
GPUS = ("L40S", "H100-SXM-80GB", "A100-SXM-80GB", "H200-SXM-141GB")


def random_spec(seed: int) -> str:
    """Return a spec of one model with one or two workloads."""
    draw = np.random.default_rng([7, seed])

    def workload() -> dict[str, object]:
        prompt = float(np.exp(draw.uniform(np.log(150), np.log(6000))))
        answer = float(np.exp(draw.uniform(np.log(40), np.log(1200))))
        spread = [float(draw.uniform(1.5, 3.4)) for _ in range(2)]
        slo = {"ttft_p95": f"{float(np.exp(draw.uniform(np.log(0.6), np.log(6)))):.2f} s"}
        slo["tpot_p95"] = f"{float(np.exp(draw.uniform(np.log(25), np.log(120)))):.0f} ms"
        return {
            "model": "m",
            "traffic": {
                "rate": f"{float(np.exp(draw.uniform(np.log(1), np.log(80)))):.2f} req/s",
                "input_tokens": {"mean": round(prompt), "p95": round(prompt * spread[0])},
                "output_tokens": {"mean": round(answer), "p95": round(answer * spread[1])},
                "arrival_cv2": float(draw.choice([1.0, 1.0, 1.5, 2.5])),
            },
            "slo": slo,
        }

    count = int(draw.choice([1, 1, 2]))
    spec = {
        "version": 1,
        "fleet": f"random-{seed}",
        "models": {"m": {"use": str(draw.choice(MODELS)), "max_model_len": 32768}},
        "workloads": {f"w{n}": workload() for n in range(count)},
        "supply": {
            "offers": [{"provider": "aws", "gpus": [str(g) for g in draw.choice(GPUS, 2, replace=False)]}],
        },
        "planning": {"estimated_prices": True},
    }
    return yaml.safe_dump(spec, sort_keys=False)


def plans(count: int) -> None:
    """Print how many plans of random specs pass their replay, and what certified ones waste."""
    settings = Settings(replications=3, requests=20_000)
    verdicts: dict[str, int] = {}
    more: list[float] = []
    by_pool: dict[str, int] = {}
    rounds, price, seed = [], [], 0
    while sum(verdicts.values()) < count:
        seed += 1
        text = random_spec(seed)
        plan, table, constants = planned(text)
        if not plan.pools:
            continue
        found = replay_plan(plan, table, constants, settings)
        verdicts[found.verdict] = verdicts.get(found.verdict, 0) + 1
        for pool in found.pools:
            by_pool[pool.verdict] = by_pool.get(pool.verdict, 0) + 1
        if found.verdict != "pass":
            bad = [
                (w.name, x.metric, f"{x.replayed_s.value / x.limit_s:.3f}")
                for p in found.pools
                for w in p.workloads
                for x in w.limits
                if x.verdict != "pass"
            ]
            print(f"  seed {seed}: {found.verdict} {bad}, replicas {[p.replicas for p in found.pools]}", flush=True)
        certified, table, constants = planned(text, settings)
        if certified.certificate is None or certified.certificate.replayed.verdict != "pass":
            print(f"  seed {seed}: not certified: {certified.status}", flush=True)
            continue
        rounds.append(certified.certificate.rounds)
        price.append(certified.certificate.price_usd_per_hour / certified.certificate.first_usd_per_hour)
        more += [wasted(p, table, constants, settings) for p in by_model(loads_of(certified, table))]
    total = sum(verdicts.values())
    print(f"uncertified plans: {verdicts} of {total}; pools: {by_pool}")
    print(
        f"certified: {len(rounds)} in {np.mean(rounds):.2f} rounds (at most {max(rounds)}); they cost {np.mean(price):.2%} more"
    )
    several = [share for share in more if share >= 0.0]
    print(
        f"replicas above the fewest that pass, {len(several)} models: median {np.median(several):.1%}, "
        f"mean {np.mean(several):.1%}, 90th percentile {np.percentile(several, 90):.1%}"
    )


def by_model(loads: list[PoolLoad]) -> list[list[PoolLoad]]:
    return [[p for p in loads if p.shape.model == m] for m in dict.fromkeys(p.shape.model for p in loads)]


def wasted(loads: list[PoolLoad], table: CandidateTable, constants: SpeedConstants, settings: Settings) -> float:
    """Return the GPUs of a model beyond the fewest whose pools pass, pool by pool, at the same shapes and loads."""
    fewest = list(loads)
    for number in range(len(loads)):
        low, high = 0, fewest[number].replicas  # low fails, high passes
        while high - low > 1:
            middle = (low + high) // 2
            tried = [*fewest[:number], replace(fewest[number], replicas=middle), *fewest[number + 1 :]]
            found = replay_fleet(table.models, table.workloads, tried, constants, settings)
            low, high = (low, middle) if found[number].verdict == "pass" else (middle, high)
        fewest[number] = replace(fewest[number], replicas=high)
    gpus = [sum(p.replicas * p.shape.gpus for p in each) for each in (loads, fewest)]
    return gpus[0] / gpus[1] - 1.0


def main() -> None:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "plans"))
    parser.add_argument("--trace", type=Path, default=SAMPLE)
    parser.add_argument("--count", type=int, default=100)
    asked = parser.parse_args()
    if asked.what == "speed":
        speed(asked.trace)
    else:
        plans(asked.count)


if __name__ == "__main__":
    main()
