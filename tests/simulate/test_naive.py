"""The slow simulator against schedules worked out by hand, so that what others are held against is itself held."""

from __future__ import annotations

from dataclasses import replace

import pytest
from naive import replay_by_steps

from planner.simulate.types import Batching, EngineRules, Requests, Router, Served, StepCosts

# Bumpy numbers, so that no two ways to add them up agree by chance.
COSTS = StepCosts(
    decode_ps=[100, 110, 125, 145],
    prompt_ps=[0, 4, 7, 9, 10],
    alone_ps=[0, 11, 13, 16, 20, 25, 31, 38],
    context_ps=1,
    attended_ps=2,
)


def requests_of(*rows: tuple[int, int, int], hit: int = 0, shared: int = 0, reserved: int = 0) -> Requests:
    """Requests of (arrival, input, output), the rest the same for all."""
    count = len(rows)
    return Requests(
        arrival_ps=[row[0] for row in rows],
        input_tokens=[row[1] for row in rows],
        output_tokens=[row[2] for row in rows],
        hit_tokens=[hit] * count,
        shared_tokens=[shared] * count,
        reserved_blocks=[reserved] * count,
    )


def test_chunks_and_a_preemption() -> None:
    # Blocks of 4 tokens; A takes ceil(6/4) = 2, B ceil(3/4) = 1, C ceil(2/4) = 1 of 5; one more is free at admission.
    rules = EngineRules(Batching.CHUNKED, slots=3, token_budget=4, blocks=5, watermark_blocks=1, block_tokens=4)
    requests = requests_of((0, 6, 5), (0, 3, 5), (10, 2, 3))  # A, B, C
    # 0: A computes 4 of 6, its first chunk; the budget is used up.
    #    decode[0] + prompt[4] - prompt[0] + 2 (1+2+3+4) = 100 + 10 + 20 = 130 -> 130
    # 130: A computes 2 behind 4; B is admitted (1 <= 3 - 0 - 1) and computes 2 of 3.
    #    100 + 10 + 2 (5+6) + 2 (1+2) = 138 -> 268: first of A
    # 268: A decodes at 7 (6 % 4: no block); B computes 1 behind 2; C is admitted (1 <= 2 - 0 - 1) and computes 2.
    #    decode[1] + 7 + prompt[1+3] - prompt[1] + 2 (3) + 2 (1+2) = 110 + 7 + 6 + 6 + 6 = 135 -> 403: first of B and C
    # 403: A, B, C decode at 8, 4, 3 and nobody needs a block; one is free.
    #    decode[3] + 15 = 160 -> 563
    # 563: A at 9 and B at 5 need a block each, one is free: C, the last admitted, goes back and keeps its 2 tokens.
    #    decode[2] + 14 = 139 -> 702. Nothing is free then (A 3, B 2).
    # 702: A at 10, B at 6. C would take ceil(4/4) = 1 and waits.
    #    125 + 16 = 141 -> 843: A has 5 tokens: finished. 3 free.
    # 843: B at 7; C is admitted again (1 <= 3 - 0 - 1), 3 of its 2 + 2 tokens.
    #    110 + 7 + prompt[1+3] - prompt[1] + 2 (1+2+3) = 110 + 7 + 6 + 12 = 135 -> 978: B has 5: finished
    # 978: C computes 1 behind 3: 100 + 4 + 2 (4) = 112 -> 1090: its third token: finished
    served = replay_by_steps(COSTS, rules, requests, 1, Router.ROUND_ROBIN)
    assert served == Served(
        admitted_ps=[0, 130, 268],
        first_ps=[268, 403, 403],
        finish_ps=[843, 978, 1090],
        preemptions=[0, 0, 1],
        engine=[0, 0, 0],
    )


def test_a_preempted_partial_prompt_loses_what_was_computed() -> None:
    rules = EngineRules(Batching.CHUNKED, slots=2, token_budget=3, blocks=8, watermark_blocks=0, block_tokens=1)
    requests = requests_of((0, 2, 3), (1, 5, 1))  # A, B
    # 0: A computes 2: 100 + 7 + 2 (1+2) = 113 -> 113. 6 free.
    # 113: A decodes at 3 and needs a block; B is admitted (5 <= 6 - 1) and computes 2 of 5.
    #    110 + 3 + prompt[3] - prompt[1] + 2 (1+2) = 110 + 3 + 5 + 6 = 124 -> 237. None free.
    # 237: A at 4 needs a block: B goes back. 110 + 4 = 114 -> 351: A finished
    # 351: B computes 3: 100 + 9 + 2 (1+2+3) = 121 -> 472; then 2 behind 3: 100 + 7 + 2 (4+5) = 125 -> 597
    served = replay_by_steps(COSTS, rules, requests, 1, Router.ROUND_ROBIN)
    assert served == Served(
        admitted_ps=[0, 113], first_ps=[113, 597], finish_ps=[351, 597], preemptions=[0, 1], engine=[0, 0]
    )


def test_hits_shared_and_reserved_blocks_and_a_window() -> None:
    costs = StepCosts(
        decode_ps=[100, 110],
        prompt_ps=[0, 4, 7, 9, 10],
        alone_ps=[0],
        context_ps=1,
        attended_ps=2,
        local_context_ps=3,
        local_attended_ps=5,
        window_tokens=6,
    )
    # 4 of 8 tokens lie in shared blocks: ceil(4/4) + 1 reserved = 2 blocks, and ceil(6/4) + 1 = 3 at full length.
    rules = EngineRules(Batching.CHUNKED, slots=1, token_budget=4, blocks=3, watermark_blocks=0, block_tokens=4)
    requests = requests_of((0, 8, 3), hit=5, shared=4, reserved=1)
    # 0: 3 tokens behind 5: 100 + 9 + 2 (6+7+8) + 5 (6+6+6) = 241
    # 241: at 9, own 5: a block. 110 + 9 + 3 (6) = 137 -> 378; at 10: 138 -> 516
    served = replay_by_steps(costs, rules, requests, 1, Router.ROUND_ROBIN)
    assert (served.first_ps, served.finish_ps) == ([241], [516])


def test_prompts_first_with_a_prompt_beyond_the_budget() -> None:
    rules = EngineRules(Batching.PROMPTS_FIRST, slots=3, token_budget=4, blocks=20, watermark_blocks=1, block_tokens=4)
    requests = requests_of((0, 7, 4), (0, 2, 2), (0, 2, 2), (300, 1, 1), (300, 5, 1))  # A, B, C, D, E
    # 0: A alone, though it is longer than the budget: alone[7] + 2 (1+...+7) = 38 + 56 = 94 -> 94: first of A
    # 94: B and C together, A waits: alone[4] + 2 (1+2) + 2 (1+2) = 20 + 12 = 32 -> 126: first of both
    # 126: all decode, at 8, 3, 3: 145 + 14 = 159 -> 285: B and C finished
    # 285: A at 9: 110 + 9 = 119 -> 404
    # 404: D; E would make 6: alone[1] + 2 (1) = 13 -> 417: D finished
    # 417: E alone: alone[5] + 2 (15) = 25 + 30 = 55 -> 472: E finished
    # 472: A at 10: 120 -> 592: finished
    served = replay_by_steps(COSTS, rules, requests, 1, Router.ROUND_ROBIN)
    assert served == Served(
        admitted_ps=[0, 94, 94, 404, 417],
        first_ps=[94, 126, 126, 417, 472],
        finish_ps=[592, 285, 285, 417, 472],
        preemptions=[0] * 5,
        engine=[0] * 5,
    )


STATIC_COSTS = StepCosts(
    decode_ps=[100, 110, 125],
    prompt_ps=[0],
    alone_ps=[0, 5, 9, 12],
    context_ps=1,
    attended_ps=2,
    local_context_ps=3,
    local_attended_ps=5,
    window_tokens=4,
)
STATIC_REQUESTS = requests_of((0, 3, 2), (0, 5, 4), (0, 2, 1))  # A, B, C


def test_static_batch_of_two_lengths() -> None:
    rules = EngineRules(Batching.STATIC, slots=2, token_budget=1, blocks=4, watermark_blocks=9, block_tokens=4)
    # A and B are padded to 5 and 4: 2 ceil(8/4) = 4 blocks.
    # 0: 10 tokens, 7 beyond the table: 12 + 7 (12-9) = 33; 2 (2 (1+2+3+4+5) + 5 (1+2+3+4+4)) = 200
    #    -> 233: first of both
    # 233: both at 6: 125 + 2 (6 + 3 (4)) = 161 -> 394: A finished
    # 394: both at 7, A as padding: 163 -> 557; at 8: 165 -> 722: B finished
    # 722: C: alone[2] + 2 (1+2) + 5 (1+2) = 9 + 6 + 15 = 30 -> 752
    served = replay_by_steps(STATIC_COSTS, rules, STATIC_REQUESTS, 1, Router.ROUND_ROBIN)
    assert served == Served(
        admitted_ps=[0, 0, 722],
        first_ps=[233, 233, 752],
        finish_ps=[394, 722, 752],
        preemptions=[0] * 3,
        engine=[0] * 3,
    )


def test_static_batch_that_the_blocks_cut_short() -> None:
    rules = EngineRules(Batching.STATIC, slots=2, token_budget=1, blocks=3, watermark_blocks=9, block_tokens=4)
    # A alone, with B it would take 4: 12 + 2 (1+2+3) + 5 (1+2+3) = 54 -> 54; at 4: 110 + 4 + 3 (4) = 126 -> 180
    # 180: B alone, with C it would take 4: 12 + 2 (3) + 2 (15) + 5 (14) = 118 -> 298; at 6, 7, 8: 128, 129, 130 -> 685
    # 685: C: 30 -> 715
    served = replay_by_steps(STATIC_COSTS, rules, STATIC_REQUESTS, 1, Router.ROUND_ROBIN)
    assert served == Served(
        admitted_ps=[0, 180, 685],
        first_ps=[54, 298, 715],
        finish_ps=[180, 685, 715],
        preemptions=[0] * 3,
        engine=[0] * 3,
    )


# A prompt token takes 1, contexts nothing: what matters is who is where.
POOL_COSTS = StepCosts(
    decode_ps=[100, 110, 125, 145], prompt_ps=list(range(12)), alone_ps=[0], context_ps=0, attended_ps=0
)
POOL_RULES = EngineRules(Batching.CHUNKED, slots=5, token_budget=10, blocks=100, watermark_blocks=0, block_tokens=4)
POOL_REQUESTS = requests_of(
    (0, 2, 4), (0, 8, 2), (50, 3, 1), (50, 3, 3), (50, 2, 1), (217, 1, 1), (218, 1, 1), (219, 1, 1)
)


def test_blocks_that_stay_free_hold_back_all_but_the_first() -> None:
    rules = EngineRules(Batching.CHUNKED, slots=5, token_budget=10, blocks=4, watermark_blocks=2, block_tokens=1)
    # 3 of 4 blocks leave less than 2, which an empty engine may; 1 of the last one may not enter beside it.
    # 0: 100 + 3 -> 103; then 100 + 1 -> 204.
    served = replay_by_steps(POOL_COSTS, rules, requests_of((0, 3, 1), (0, 1, 1)), 1, Router.ROUND_ROBIN)
    assert (served.admitted_ps, served.finish_ps) == ([0, 103], [103, 204])


def test_blocks_this_step_needs_and_a_preempted_request_hold_back_the_queue() -> None:
    rules = EngineRules(Batching.CHUNKED, slots=5, token_budget=10, blocks=7, watermark_blocks=0, block_tokens=1)
    requests = requests_of((0, 2, 4), (0, 3, 3), (1, 1, 1))  # A, B, C
    # 0: A and B: 100 + 5 -> 105. 2 free.
    # 105: A and B need both, so C's one is not there: 125 -> 230
    # 230: they need 2 more: B goes back with 2 tokens and leaves 4: 110 -> 340
    # 340: A needs one of 3; B, at the front, would take 3 + 2, and C waits behind it: 110 -> 450: A finished
    # 450: B and C: 100 + 5 + 1 -> 556: both finished
    served = replay_by_steps(POOL_COSTS, rules, requests, 1, Router.ROUND_ROBIN)
    assert served == Served(
        admitted_ps=[0, 0, 450],
        first_ps=[105, 105, 556],
        finish_ps=[450, 556, 556],
        preemptions=[0, 1, 0],
        engine=[0, 0, 0],
    )


@pytest.mark.parametrize("batching", [Batching.CHUNKED, Batching.PROMPTS_FIRST])
def test_slots_limit_those_that_run_at_once(batching: Batching) -> None:
    rules = replace(POOL_RULES, batching=batching, slots=2)
    costs = replace(POOL_COSTS, alone_ps=list(range(100, 112)))
    # 0: A and B, C finds no slot: 100 + 3 -> 103: B finished. C is beside A then.
    # chunked: A with C: 110 + 1 -> 214: both finished. prompts_first: C: 101 -> 204: finished; A: 110 -> 314.
    served = replay_by_steps(costs, rules, requests_of((0, 2, 2), (0, 1, 1), (0, 1, 1)), 1, Router.ROUND_ROBIN)
    assert served.admitted_ps == [0, 0, 103]
    assert served.finish_ps == ([214, 103, 214] if batching == Batching.CHUNKED else [314, 103, 204])


@pytest.mark.parametrize(
    ("router", "engine", "finish_ps"),
    [
        # Engine 0 (r0, r2, r4, r6): 0: r0's prompt -> 102. Then r0 with r2 and r4: 110 + 5 -> 217. r0 -> 327.
        #    r0 with r6: 110 + 1 -> 438.
        # Engine 1 (r1, r3, r5, r7): 0: r1's prompt -> 108. r1 with r3: 110 + 3 -> 221.
        #    r3 with r5 and r7: 110 + 2 -> 333. r3 -> 443.
        (Router.ROUND_ROBIN, [0, 1, 0, 1, 0, 1, 0, 1], [438, 221, 217, 443, 217, 333, 438, 333]),
        # r0: 0:0, a tie, to 0. r1: 1:0. r2: 1:1, a tie, to 0. r3: 2:1. r4: 2:2, a tie, to 0.
        # r5 at 217: the step that ends at 217 is not over: r0, r2, r4 to r1, r3 is 3:2. r6 at 218: 1:3. r7: 2:3.
        # Engine 0: as above to 327, then r0 with r6 and r7: 110 + 2 -> 439.
        # Engine 1: as above to 221, then r3 with r5: 110 + 1 -> 332; r3 -> 442.
        (Router.LEAST_OUTSTANDING, [0, 1, 0, 1, 0, 1, 0, 0], [439, 221, 217, 442, 217, 332, 439, 439]),
        # r0: 0:0, a tie. r1: 2:0. r2: 2:8. r3: 5:8. r4: 8:8, a tie, to 0.
        # Engine 0: 0: r0's prompt -> 102. r0 with r2, r3, r4: 110 + 8 -> 220. r0 and r3: 125 -> 345, 125 -> 470.
        # Engine 1: 0: r1's prompt -> 108. r1 -> 218.
        # r5 at 217: (2+1) + 3 + 3 + 2 = 11 to 8 + 1 = 9. r6 at 218, where r1 is not over: 11:10.
        # Engine 1 at 218: r5 and r6: 100 + 2 -> 320. r7 at 219: 11:2, computed from 320: 101 -> 421.
        (Router.SHORTEST_KV, [0, 1, 0, 0, 0, 1, 1, 1], [470, 218, 220, 470, 220, 320, 320, 421]),
    ],
)
def test_two_engines(router: Router, engine: list[int], finish_ps: list[int]) -> None:
    served = replay_by_steps(POOL_COSTS, POOL_RULES, POOL_REQUESTS, 2, router)
    assert served.engine == engine
    assert served.finish_ps == finish_ps


def test_an_engine_that_fails_at_the_end_of_its_step() -> None:
    requests = requests_of((0, 2, 1), (0, 4, 3), (0, 6, 1), (5, 3, 1), (6, 1, 1), (215, 1, 1))
    # Engine 0: r0 -> 102, r3: 103 -> 205, idle. Engine 2: r2 -> 106, idle.
    # Engine 1: r1's prompt -> 104: its first token. r1 with r4: 110 + 1 -> 215, when the engine dies: the step is lost.
    # r1 and r4 are the 6th and 7th to be routed, r5, which arrives at 215 too, the 8th: to engines 2, 0, 2 of 0 and 2.
    # Engine 0 at 215: r4: 101 -> 316.
    # Engine 2 at 215: r1 and r5: 100 + 5 -> 320; r1 -> 430 -> 540.
    served = replay_by_steps(POOL_COSTS, POOL_RULES, requests, 3, Router.ROUND_ROBIN, fail=(215, 1))
    assert served == Served(
        admitted_ps=[0, 215, 0, 102, 215, 215],
        first_ps=[102, 320, 106, 205, 316, 320],
        finish_ps=[102, 540, 106, 205, 316, 320],
        preemptions=[0] * 6,
        engine=[0, 2, 2, 0, 0, 2],
    )


def test_a_request_routed_again_counts_as_one_more_in_turn() -> None:
    # r0 goes to engine 0, which dies; as the second to be routed it goes to engine 2 of 1 and 2, r1 as the third to 1.
    served = replay_by_steps(
        POOL_COSTS, POOL_RULES, requests_of((0, 2, 1), (60, 2, 1)), 3, Router.ROUND_ROBIN, fail=(50, 0)
    )
    assert served.engine == [2, 1]
    assert served.finish_ps == [152, 162]


def test_nothing_is_served_where_no_engine_lives() -> None:
    # r0 is finished at 102; r1 is in the step that is lost, r2 arrives later.
    requests = requests_of((0, 2, 1), (50, 2, 1), (900, 2, 1))
    served = replay_by_steps(POOL_COSTS, POOL_RULES, requests, 1, Router.SHORTEST_KV, fail=(150, 0))
    assert served == Served(
        admitted_ps=[0, -1, -1],
        first_ps=[102, -1, -1],
        finish_ps=[102, -1, -1],
        preemptions=[0] * 3,
        engine=[0, -1, -1],
    )
