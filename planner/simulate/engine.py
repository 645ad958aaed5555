"""One engine with continuous batching, that jumps from event to event on an integer clock.

Between two events every step has the same sequences, so that step j takes `a + d j` and k of them `k a + d k (k-1)/2`: one
plan covers them all, and ends exactly where the steps would. Nothing per sequence is touched in a jump: the context of a
running sequence is an offset plus the number of steps done. The rules are those of planner/manual/simulate.md.
"""

from __future__ import annotations

from collections import Counter, deque
from heapq import heappop, heappush
from math import isqrt

from planner.simulate.types import (
    Batching,
    EngineRules,
    Occupancy,
    Requests,
    Served,
    StepCosts,
    gap_bin,
    longest_in_bin,
)

NEVER = 1 << 62
"""Later than anything: when an idle engine is due."""
_NONE = -1


class Engine:
    """Plans and commits jumps: `due` is when the running one ends, `outstanding[number]` the requests that are not done."""

    def __init__(
        self,
        costs: StepCosts,
        rules: EngineRules,
        requests: Requests,
        served: Served,
        number: int,
        outstanding: list[int],
        generated: list[int],
    ) -> None:
        """Start idle and empty. `generated` counts the tokens of every request of the pool, for whoever holds it."""
        self.costs, self.rules, self.requests, self.served = costs, rules, requests, served
        self.number, self.outstanding, self.generated = number, outstanding, generated
        self.occupancy = Occupancy()
        self.due = NEVER
        self._chunked = rules.batching is Batching.CHUNKED
        self._now = 0
        self._steps = 0
        self._free = rules.blocks
        self._queue: deque[int] = deque()
        self._batch = 0
        self._context = 0  # sum of the contexts of sequences that decode, in the next step
        self._local_context = 0  # the same with each within the window
        self._growing = 0  # sequences below the window
        self._phases: Counter[int] = Counter()  # sequences by the step, modulo the block, in which they need a block
        self._offset: dict[int, int] = {}  # of sequences that decode: context less the steps done
        self._admission: dict[int, int] = {}
        self._admissions = 0
        self._order: list[tuple[int, int]] = []  # (admission, request), some of them over
        self._ends: list[tuple[int, int, int]] = []  # heap of (steps done then, request, admission)
        self._fills: list[tuple[int, int, int]] = []  # heap of the same, when contexts reach the window
        self._partial = _NONE
        self._done_tokens = 0  # of the partial prompt, cached ones included
        self._waiting_tokens = 0  # of prompts that are not computed yet, whole
        self._stalled = 0  # time since the last step that decoded, spent on prompts alone
        # The plan: k steps of a + d j each, what they compute, and whether an arrival may join at their boundaries.
        self._k, self._a, self._d = 0, 0, 0
        self._decodes = False
        self._whole: list[int] = []
        self._chunk = 0
        self._open = False

    # -- what a pool asks ---------------------------------------------------------------------------------------------

    def offer(self, request: int, now: int) -> None:
        """Queue a request that arrives now, and shorten the running jump where it could join before its end."""
        self._queue.append(request)
        self.outstanding[self.number] += 1
        self._waiting_tokens += self.requests.input_tokens[request] + self.generated[request]
        if self.due == NEVER:
            self._now, self.due, self._k, self._whole = now, now, 0, []
        elif self._open:
            self._open = False
            self._k = self._steps_until(now)
            self.due = self._now + self._duration(self._k)

    def advance(self) -> None:
        """End the running jump, and plan the next one."""
        self._commit()
        self._plan()

    def resident_tokens(self, now: int) -> int:
        """Return the tokens of sequences that decode, as of the last boundary before `now`, and of prompts to compute."""
        tokens = self._context + self._waiting_tokens
        if self._decodes and self._k > 1 and self.due != NEVER and now > self._now:
            # Steps that ended before now: one fewer than it takes to reach it.
            tokens += self._batch * min(self._steps_until(now) - 1, self._k - 1)
        return tokens

    def fail(self) -> list[int]:
        """Stop for good. Return the requests that it had, sorted; they start again from nothing."""
        lost = [*self._queue, *self._offset, *self._whole]
        if self._partial != _NONE:
            lost.append(self._partial)
        lost = sorted(set(lost))
        for request in lost:
            self.generated[request] = 0
            self.served.admitted_ps[request] = self.served.first_ps[request] = -1
        self.outstanding[self.number] = 0
        self.due = NEVER
        self._queue.clear()
        return lost

    # -- one scheduler decision ---------------------------------------------------------------------------------------

    def _plan(self) -> None:
        self._whole, self._chunk, self._open = [], 0, False
        need = self._phases[-self._steps % self.rules.block_tokens]
        if need > self._free:
            while need > self._free:
                need -= self._preempt(-self._steps % self.rules.block_tokens)
            self._set_decoding(1, 0, 0)
        elif self._chunked:
            self._plan_chunks(need)
        elif not self._plan_prompts(need):
            self._plan_decoding(is_open=not self._queue and self._batch < self.rules.slots)
        self.occupancy.plans += 1

    def _plan_chunks(self, need: int) -> None:
        rules = self.rules
        budget = left = rules.token_budget - self._batch
        if left <= 0 or (self._partial == _NONE and not self._queue):
            self._plan_decoding(is_open=left > 0 and not self._queue and self._batch < rules.slots)
            return
        attended = 0
        prompts = 0
        partial = self._partial
        if partial != _NONE:
            rest = self._prompt(partial) - self._done_tokens
            q = rest if rest < left else left
            attended += self._attention(self._done_tokens, q)
            left -= q
            prompts = 1
            if q == rest:
                self._whole.append(partial)
                self._partial = _NONE
            else:
                self._chunk = q
        while left > 0 and self._queue and self._batch + prompts < rules.slots:
            request = self._queue[0]
            if not self._admit(request, need, is_empty=self._batch + prompts == 0):
                break
            hit = self.requests.hit_tokens[request]
            rest = self._prompt(request) - hit
            q = rest if rest < left else left
            attended += self._attention(hit, q)
            left -= q
            prompts += 1
            if q == rest:
                self._whole.append(request)
            else:
                self._partial, self._done_tokens, self._chunk = request, hit, q
        if prompts == 0:
            self._plan_decoding(is_open=False)
            return
        computed = budget - left
        prompt_ps = self.costs.prompt_ps
        extra = prompt_ps[self._batch + computed] - prompt_ps[self._batch] + attended
        if self._whole or self._chunk < budget:
            self._set_decoding(1, extra, 0)
            return
        rest = self._prompt(self._partial) - self._done_tokens
        steps = min((rest - 1) // self._chunk, self._most_steps())
        if self.costs.local_attended_ps and self._done_tokens < self.costs.window_tokens:
            steps = 1
        self._set_decoding(steps, extra, self.costs.attended_ps * self._chunk * self._chunk)

    def _plan_prompts(self, need: int) -> bool:
        """Plan a step of whole prompts; tell whether there is one."""
        rules, tokens, attended = self.rules, 0, 0
        while self._queue and self._batch + len(self._whole) < rules.slots:
            request = self._queue[0]
            hit = self.requests.hit_tokens[request]
            rest = self._prompt(request) - hit
            if self._whole and tokens + rest > rules.token_budget:
                break
            if not self._admit(request, need, is_empty=self._batch + len(self._whole) == 0):
                break
            tokens += rest
            attended += self._attention(hit, rest)
            self._whole.append(request)
        if not self._whole:
            return False
        self._decodes, self._k, self._a, self._d = False, 1, self.costs.alone_ps[tokens] + attended, 0
        self.due = self._now + self._a
        return True

    def _plan_decoding(self, *, is_open: bool) -> None:
        if self._batch == 0:
            self._k, self._decodes, self.due = 0, False, NEVER
            return
        self._set_decoding(self._most_steps(), 0, 0)
        self._open = is_open and self._k > 1

    def _set_decoding(self, steps: int, extra: int, growth: int) -> None:
        costs = self.costs
        base = costs.decode_ps[self._batch] + costs.context_ps * self._context
        self._a = base + costs.local_context_ps * self._local_context + extra
        self._d = costs.context_ps * self._batch + costs.local_context_ps * self._growing + growth
        self._k, self._decodes = steps, True
        self.due = self._now + self._duration(steps)

    def _most_steps(self) -> int:
        """Return the steps until a sequence ends or reaches the window, or blocks run out."""
        if self._batch == 0:
            return NEVER
        ends = self._ends
        while self._admission.get(ends[0][1]) != ends[0][2]:
            heappop(ends)
        steps = ends[0][0] - self._steps
        fills = self._fills
        while fills and self._admission.get(fills[0][1]) != fills[0][2]:
            heappop(fills)
        if fills:
            steps = min(steps, fills[0][0] - self._steps)
        block = self.rules.block_tokens
        if (steps // block + 1) * self._batch <= self._free:
            return steps
        rounds = self._free // self._batch
        left = self._free - rounds * self._batch
        more = 0
        while more < block - 1:
            left -= self._phases[(-self._steps - more) % block]
            if left < 0:
                break
            more += 1
        return min(steps, rounds * block + more)

    def _admit(self, request: int, need: int, *, is_empty: bool) -> bool:
        blocks = self._blocks_of(request)
        if blocks > self._free - need - (0 if is_empty else self.rules.watermark_blocks):
            return False
        self._queue.popleft()
        self._free -= blocks
        self._admission[request] = self._admissions
        self._order.append((self._admissions, request))
        self._admissions += 1
        if self.served.admitted_ps[request] < 0:
            self.served.admitted_ps[request] = self._now
        return True

    def _preempt(self, phase: int) -> int:
        """Take back the last admission. Return 1 where it needed a block in the step with this phase, else 0."""
        while True:
            admission, request = self._order.pop()
            if self._admission.get(request) == admission:
                break
        self.served.preemptions[request] += 1
        if request == self._partial:
            self._free += self._blocks_of(request)
            self._partial = _NONE
            needed = 0
        else:
            needed = int(self._leave(request) == phase)
            self._waiting_tokens += self._prompt(request)
        del self._admission[request]
        self._queue.appendleft(request)
        return needed

    # -- what a jump does ---------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        steps, now = self._k, self.due
        passed = now - self._now
        if passed:
            self._observe(passed)
        self._now = now
        if self._decodes and steps:
            if self.rules.counts_gaps and self._batch:
                self._count_gaps(steps)
            block, phases = self.rules.block_tokens, self._phases
            rounds, more = divmod(steps, block)
            taken = rounds * self._batch
            for j in range(more):
                taken += phases[(-self._steps - j) % block]
            self._free -= taken
            self.occupancy.blocks_ps += passed * taken // 2  # held for half of the time on average
            self._context += self._batch * steps
            self._local_context += self._growing * steps
            self._steps += steps
            self.occupancy.steps += steps
            self.occupancy.decoded_tokens += self._batch * steps
            self.occupancy.most_blocks = max(self.occupancy.most_blocks, self.rules.blocks - self._free)
            if self._partial != _NONE:
                self._done_tokens += self._chunk * steps
            self._pass_window()
            self._end_sequences()
        elif steps:
            self.occupancy.steps += steps
            self._stalled += passed if self._batch else 0
        for request in self._whole:
            self._emit_first(request)
        self._whole = []

    def _end_sequences(self) -> None:
        ends = self._ends
        while ends and ends[0][0] <= self._steps:
            _, request, admission = heappop(ends)
            if self._admission.get(request) == admission:
                self._leave(request)
                self._finish(request)

    def _pass_window(self) -> None:
        fills = self._fills
        while fills and fills[0][0] <= self._steps:
            _, request, admission = heappop(fills)
            if self._admission.get(request) == admission:
                self._growing -= 1

    def _emit_first(self, request: int) -> None:
        """Take a prompt that is whole: it emits a token, and decodes until it has all."""
        self._waiting_tokens -= self._prompt(request)
        self.generated[request] += 1
        if self.served.first_ps[request] < 0:
            self.served.first_ps[request] = self._now
        left = self.requests.output_tokens[request] - self.generated[request]
        if left == 0:
            self._free += self._blocks_for(request, self._prompt(request) - 1)
            self._finish(request)
            return
        context, admission = self._prompt(request), self._admission[request]
        self._offset[request] = context - self._steps
        self._batch += 1
        self._context += context
        window = self.costs.window_tokens
        self._local_context += min(context, window)
        if context < window:
            self._growing += 1
            heappush(self._fills, (self._steps + window - context, request, admission))
        own = context - self.requests.shared_tokens[request]
        self._phases[(own - 1 - self._steps) % self.rules.block_tokens] += 1
        heappush(self._ends, (self._steps + left, request, admission))

    def _leave(self, request: int) -> int:
        """Take a sequence that decodes out of all sums, and its blocks back. Return its phase."""
        context = self._offset.pop(request) + self._steps
        self.generated[request] = context - self.requests.input_tokens[request]
        self._batch -= 1
        self._context -= context
        window = self.costs.window_tokens
        self._local_context -= min(context, window)
        if context < window:
            self._growing -= 1
        own = context - self.requests.shared_tokens[request]
        phase = (own - 1 - self._steps) % self.rules.block_tokens
        self._phases[phase] -= 1
        self._free += self._blocks_for(request, context - 1)
        return phase

    def _finish(self, request: int) -> None:
        self.served.finish_ps[request] = self._now
        self.served.engine[request] = self.number
        self.outstanding[self.number] -= 1
        del self._admission[request]

    def _observe(self, passed: int) -> None:
        held = self.rules.blocks - self._free
        self.occupancy.busy_ps += passed
        self.occupancy.batch_ps += passed * self._batch
        self.occupancy.blocks_ps += passed * held
        self.occupancy.most_blocks = max(self.occupancy.most_blocks, held)

    def _count_gaps(self, steps: int) -> None:
        """Count the gaps that end in a jump: what prompts alone took counts with its first step."""
        gaps, batch, a, d = self.occupancy.gaps, self._batch, self._a, self._d
        if self._stalled:
            gaps[gap_bin(a + self._stalled)] += batch
            self._stalled = 0
            a, steps = a + d, steps - 1
        while steps:
            number = gap_bin(a)
            alike = steps if d == 0 else min(steps, max(1, int((longest_in_bin(number) - a) / d) + 1))
            gaps[number] += batch * alike
            a, steps = a + d * alike, steps - alike

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def _prompt(self, request: int) -> int:
        return self.requests.input_tokens[request] + self.generated[request]

    def _blocks_of(self, request: int) -> int:
        """Return the blocks that a prompt takes when it is admitted."""
        return self._blocks_for(request, self._prompt(request))

    def _blocks_for(self, request: int, tokens: int) -> int:
        own = tokens - self.requests.shared_tokens[request]
        return -(-own // self.rules.block_tokens) + self.requests.reserved_blocks[request]

    def _attention(self, before: int, tokens: int) -> int:
        costs = self.costs
        pairs = tokens * before + tokens * (tokens + 1) // 2
        if not costs.local_attended_ps:
            return costs.attended_ps * pairs
        return costs.attended_ps * pairs + costs.local_attended_ps * pairs_within(before, tokens, costs.window_tokens)

    def _duration(self, steps: int) -> int:
        return steps * self._a + self._d * (steps * (steps - 1) // 2)

    def _steps_until(self, then: int) -> int:
        """Return the fewest steps, at least one, after which the engine is at `then` or later."""
        due = then - self._now
        a, d = self._a, self._d
        if due <= a:
            return 1
        if d == 0:
            return -(-due // a)
        # The positive root of d k^2 / 2 + (a - d/2) k = due, then one up or down.
        b = 2 * a - d
        steps = max((isqrt(b * b + 8 * d * due) - b) // (2 * d), 1)
        while self._duration(steps) < due:
            steps += 1
        while steps > 1 and self._duration(steps - 1) >= due:
            steps -= 1
        return steps


def pairs_within(before: int, tokens: int, window: int) -> int:
    """Return the sum of `min(x, window)` over the places `x = before + 1 ... before + tokens`."""
    below = max(0, min(window, before + tokens) - before)
    growing = below * before + below * (below + 1) // 2
    return growing + (tokens - below) * window
