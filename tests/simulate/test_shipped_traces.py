"""The traces that ship, replayed at fixed costs: every end is pinned, on every machine and in every release."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from planner.simulate.pool import replay
from planner.simulate.trace import Trace, read_trace
from planner.simulate.types import PS_PER_S, Batching, EngineRules, Requests, Router, StepCosts

TRACES = Path(__file__).parents[2] / "specs" / "traces"
SLOTS, BUDGET = 64, 2048
COSTS = StepCosts(
    decode_ps=[8_000_000_000 + 20_000_000 * n for n in range(SLOTS + 1)],
    prompt_ps=[30_000_000 * max(0, n - 300) for n in range(BUDGET + 1)],
    alone_ps=[8_000_000_000 + 30_000_000 * n for n in range(140_000)],
    context_ps=48_000,
    attended_ps=1_300,
)
"""About an 8B model on one H100, in round figures."""

ENDS = {
    ("azure2023_conv_10min", Batching.CHUNKED, 1): "d57755735bef37f1",
    ("azure2023_conv_10min", Batching.PROMPTS_FIRST, 2): "f71259fb042cbb98",
    ("azure2023_conv_10min", Batching.STATIC, 2): "b6526f7341d1c70f",
    ("mooncake_conversation_10min", Batching.CHUNKED, 4): "0b2c10571a7b1ab9",
}


def requests_of(trace: Trace) -> Requests:
    assert trace.arrival_s is not None
    nothing = [0] * trace.input_tokens.size
    return Requests(
        arrival_ps=np.rint(trace.arrival_s * PS_PER_S).astype(np.int64).tolist(),
        input_tokens=trace.input_tokens.tolist(),
        output_tokens=trace.output_tokens.tolist(),
        hit_tokens=nothing if trace.hit_tokens is None else trace.hit_tokens.tolist(),
        shared_tokens=nothing,
        reserved_blocks=nothing,
    )


@pytest.mark.parametrize(("name", "batching", "engines"), list(ENDS), ids=str)
def test_every_end_is_where_it_always_was(name: str, batching: Batching, engines: int) -> None:
    requests = requests_of(read_trace(TRACES / f"{name}.csv"))
    rules = EngineRules(batching, SLOTS, BUDGET, blocks=9000, watermark_blocks=90)
    served = replay(COSTS, rules, requests, engines, Router.LEAST_OUTSTANDING).served

    ends = np.array(served.finish_ps, dtype="<i8")
    assert (ends > 0).all()
    assert hashlib.sha256(ends.tobytes()).hexdigest()[:16] == ENDS[name, batching, engines]
