"""Write a benchmark fleet spec to standard output, drawn from the catalog. The same arguments give the same bytes.

usage: make_fleet.py --models 5 --offers 30 [--seed 1] [--gap "0.5 %"] [--limit-per-gpu N] [--hourly]
"""

from __future__ import annotations

import argparse
import math
import random
from collections import defaultdict
from collections.abc import Iterator

from planner.catalog import Catalog

SERVED = {
    "Qwen/Qwen2.5-7B-Instruct": 5,
    "meta-llama/Llama-3.1-8B-Instruct": 6,
    "Qwen/Qwen3-14B": 3,
    "google/gemma-3-12b-it": 2,
    "Qwen/Qwen3-32B": 4,
    "Qwen/Qwen3-30B-A3B": 3,
    "meta-llama/Llama-3.3-70B-Instruct": 4,
    "Qwen/Qwen2.5-72B-Instruct": 2,
    "openai/gpt-oss-20b": 2,
    "openai/gpt-oss-120b": 2,
    "mistralai/Mixtral-8x7B-Instruct-v0.1": 1,
    "deepseek-ai/DeepSeek-R1": 1,
}
"""Models with how often they are drawn."""

LEAST_GPU_BYTES = 20e9
INPUTS, OUTPUTS = (200, 600, 1200, 2000, 4000, 8000), (30, 120, 220, 340, 800)
TTFTS_S, TPOTS_MS = (1.0, 2.0, 4.0), (50, 80, 120)
MOST_REQUESTS_PER_S = 400.0
LONGEST_P95_TOKENS = 12000
PREFILL_TOKENS_PER_S = 3000.0  # a TTFT limit leaves at least this rate for the longest prompts
Triple = tuple[str, str, str]


def sold(catalog: Catalog) -> list[Triple]:
    """Return the (provider, region, GPU) that have an on-demand price, sorted."""
    return sorted(
        {
            (provider, offer.region, offer.gpu)
            for provider in catalog.providers()
            for offer in catalog.offers(provider)
            if "on-demand" in offer.terms and catalog.gpu(offer.gpu).device().usable_bytes >= LEAST_GPU_BYTES
        }
    )


def spread(triples: list[Triple], count: int, draw: random.Random) -> list[Triple]:
    """Return `count` of the triples, GPU types in turn."""
    by_gpu: dict[str, list[Triple]] = defaultdict(list)
    for triple in triples:
        by_gpu[triple[2]].append(triple)
    for group in by_gpu.values():
        draw.shuffle(group)
    picked: list[Triple] = []
    while len(picked) < count and any(by_gpu.values()):
        picked += [by_gpu[gpu].pop() for gpu in sorted(by_gpu) if by_gpu[gpu]]
    return picked[:count]


def day(rate: float) -> str:
    """Return 24 hourly rates: a sine with its peak of `rate` at 14:00, a tenth of it twelve hours later."""
    turns = [2.0 * math.pi * (hour - 8) / 24.0 for hour in range(24)]
    return ", ".join(f"{rate * (0.55 + 0.45 * math.sin(turn)):.3f}" for turn in turns)


def workload(name: str, model: str, draw: random.Random, hourly: bool) -> Iterator[str]:
    """Yield the lines of one workload."""
    rate = min(MOST_REQUESTS_PER_S, math.exp(draw.gauss(math.log(4.0), 1.2)))
    mean_input, mean_output = draw.choice(INPUTS), draw.choice(OUTPUTS)
    long_input = min(int(2.5 * mean_input), LONGEST_P95_TOKENS)
    ttft_s = max(draw.choice(TTFTS_S), 1.0 + long_input / PREFILL_TOKENS_PER_S)
    yield f"  {name}:"
    yield f"    model: {model}"
    yield "    traffic:"
    yield f"      hourly: [{day(rate)}]" if hourly else f"      rate: {rate:.3f} req/s"
    yield f"      input_tokens: {{mean: {mean_input}, p95: {long_input}}}"
    yield f"      output_tokens: {{mean: {mean_output}, p95: {int(2.2 * mean_output)}}}"
    yield f"    slo: {{ttft_p95: {ttft_s:.2f} s, tpot_p95: {draw.choice(TPOTS_MS)} ms}}"


def fleet(models: int, offers: int, seed: int, gap: str = "0.5 %", limit_per_gpu: int = 0, hourly: bool = False) -> str:
    """Return the spec of a fleet of `models` models with 1 to 3 workloads each over `offers` offers."""
    draw = random.Random(seed)
    picked = spread(sold(Catalog.open()), offers, draw)
    names = [f"m{number:04d}" for number in range(models)]
    lines = ["version: 1", f"fleet: bench-{models}x{offers}-{seed}", "models:"]
    for name in names:
        used = draw.choices(list(SERVED), list(SERVED.values()))[0]
        lines += [f"  {name}: {{use: {used}, max_model_len: 16384}}"]
    lines.append("workloads:")
    for name in names:
        for number in range(draw.randint(1, 3)):
            lines += workload(f"{name}-w{number}", name, draw, hourly)
    lines += ["supply:", "  offers:"]
    lines += [f"    - {{provider: {p}, region: {r}, gpus: [{g}]}}" for p, r, g in picked]
    if limit_per_gpu:
        limits = ", ".join(f"{gpu}: {limit_per_gpu}" for gpu in sorted({g for _, _, g in picked}))
        lines.append(f"  limits: {{gpus: {{{limits}}}}}")
    lines.append(f"planning: {{gap: {gap}}}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, required=True)
    parser.add_argument("--offers", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gap", default="0.5 %")
    parser.add_argument("--limit-per-gpu", type=int, default=0, help="most GPUs of every type; 0 is none")
    parser.add_argument("--hourly", action="store_true", help="24 hourly rates instead of one")
    asked = parser.parse_args()
    print(fleet(asked.models, asked.offers, asked.seed, asked.gap, asked.limit_per_gpu, asked.hourly), end="")


if __name__ == "__main__":
    main()
