"""Random pools for the engine: small, with everything that can happen in them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from planner.simulate.pool import Failure
from planner.simulate.types import Batching, EngineRules, Requests, Router, StepCosts

LONGEST_PROMPT, LONGEST_ANSWER = 80, 48


@dataclass(frozen=True)
class Case:
    """What a pool is given."""

    costs: StepCosts
    rules: EngineRules
    requests: Requests
    engines: int
    router: Router
    failure: Failure | None


def random_case(seed: int) -> Case:
    """Return a pool with few blocks, arrivals together and on boundaries, prefix hits, windows, and sometimes a failure."""
    draw = Random(seed)
    window = draw.choice([0, 0, 8, 40])
    budget = draw.choice([16, 32, 64])
    slots = min(draw.choice([1, 2, 4, 8, 16]), budget)
    block = draw.choice([4, 16])
    longest = -(-(LONGEST_PROMPT + LONGEST_ANSWER) // block) + 4
    batching = draw.choice([Batching.CHUNKED, Batching.CHUNKED, Batching.PROMPTS_FIRST, Batching.STATIC])
    costs = StepCosts(
        decode_ps=[draw.randint(50, 60) + 3 * i for i in range(slots + 1)],
        prompt_ps=[i * i // 7 + 2 * i for i in range(400)],
        alone_ps=[20 + 5 * i for i in range(400)],
        context_ps=draw.choice([0, 1, 3]),
        attended_ps=draw.choice([0, 1]),
        local_context_ps=draw.choice([0, 2]) if window else 0,
        local_attended_ps=draw.choice([0, 2]) if window else 0,
        window_tokens=window,
    )
    rules = EngineRules(batching, slots, budget, draw.randint(longest, 4 * longest), draw.choice([0, 1, 2]), block)
    requests = _requests(draw, is_static=batching is Batching.STATIC)
    engines = draw.choice([1, 1, 2, 3])
    failure = None
    if engines > 1 and draw.random() < 0.4:
        failure = Failure(draw.randint(0, requests.arrival_ps[-1] + 500), (draw.randrange(engines),))
    return Case(costs, rules, requests, engines, draw.choice(list(Router)), failure)


def _requests(draw: Random, *, is_static: bool) -> Requests:
    count = draw.randint(1, 40)
    arrivals, now = [], 0
    for _ in range(count):
        now += draw.choice([0, 0, draw.randint(1, 200), draw.randint(1, 3000), 60 * draw.randint(1, 20)])
        arrivals.append(now)
    prompts = [draw.randint(1, LONGEST_PROMPT) for _ in range(count)]
    hits = [0 if is_static else draw.choice([0, draw.randint(0, tokens - 1)]) for tokens in prompts]
    return Requests(
        arrival_ps=arrivals,
        input_tokens=prompts,
        output_tokens=[draw.randint(1, LONGEST_ANSWER) for _ in range(count)],
        hit_tokens=hits,
        shared_tokens=[draw.choice([0, hit]) for hit in hits],
        reserved_blocks=[draw.choice([0, 0, 1, 2]) for _ in range(count)],
    )
