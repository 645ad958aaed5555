"""One engine with static batching: a batch is padded to its longest request and replaced when its last one is done."""

from __future__ import annotations

from collections import deque

from planner.simulate.engine import NEVER, pairs_within
from planner.simulate.types import EngineRules, Occupancy, Requests, Served, StepCosts


class StaticEngine:
    """Takes batches from its queue; `due` is when the running one ends or its next request does."""

    def __init__(
        self,
        costs: StepCosts,
        rules: EngineRules,
        requests: Requests,
        served: Served,
        number: int,
        outstanding: list[int],
    ) -> None:
        """Start idle and empty."""
        self.costs, self.rules, self.requests, self.served = costs, rules, requests, served
        self.number, self.outstanding = number, outstanding
        self.occupancy = Occupancy()
        self.due = NEVER
        self._queue: deque[int] = deque()
        self._batch: list[int] = []  # unfinished requests of the batch, those that end first last
        self._size, self._longest = 0, 0
        self._started = 0
        self._waiting_tokens = 0

    def offer(self, request: int, now: int) -> None:
        """Queue a request that arrives now."""
        self._queue.append(request)
        self.outstanding[self.number] += 1
        self._waiting_tokens += self.requests.input_tokens[request]
        if self.due == NEVER:
            self.due = now

    def advance(self) -> None:
        """End the requests that are done now, and start the next batch when all are."""
        now = self.due
        outputs = self.requests.output_tokens
        while self._batch and self._end_of(outputs[self._batch[-1]]) <= now:
            request = self._batch.pop()
            self.served.finish_ps[request] = now
            self.served.engine[request] = self.number
            self.outstanding[self.number] -= 1
        if not self._batch:
            self._start(now)
        self.due = self._end_of(outputs[self._batch[-1]]) if self._batch else NEVER

    def resident_tokens(self, now: int) -> int:
        """Return the tokens of the batch as of the last step that ended before `now`, and of queued prompts."""
        if not self._batch:
            return self._waiting_tokens
        inputs, outputs = self.requests.input_tokens, self.requests.output_tokens
        low, high = 0, outputs[self._batch[0]]
        while low < high:  # the most tokens whose steps ended before now
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._end_of(middle) < now else (low, middle - 1)
        return self._waiting_tokens + sum(inputs[r] + low for r in self._batch)

    def fail(self) -> list[int]:
        """Stop for good. Return the requests that it had, sorted; they start again from nothing."""
        lost = sorted([*self._queue, *self._batch])
        for request in lost:
            self.served.admitted_ps[request] = self.served.first_ps[request] = -1
        self.outstanding[self.number] = 0
        self.due = NEVER
        self._queue.clear()
        return lost

    def _start(self, now: int) -> None:
        taken: list[int] = []
        longest, most, reserved = 0, 0, 0
        inputs, outputs = self.requests.input_tokens, self.requests.output_tokens
        block = self.rules.block_tokens
        while self._queue and len(taken) < self.rules.slots:
            request = self._queue[0]
            wider, longer = max(longest, inputs[request]), max(most, outputs[request])
            held = reserved + self.requests.reserved_blocks[request]
            if (len(taken) + 1) * -(-(wider + longer - 1) // block) + held > self.rules.blocks:
                break
            longest, most, reserved = wider, longer, held
            taken.append(self._queue.popleft())
        if not taken:
            return
        self._started, self._size, self._longest = now, len(taken), longest
        self._batch = sorted(taken, key=lambda r: (-outputs[r], -r))
        first = self._end_of(1)
        for request in taken:
            self._waiting_tokens -= inputs[request]
            self.served.admitted_ps[request] = now
            self.served.first_ps[request] = first
        self._observe(longest, most, reserved)

    def _observe(self, longest: int, most: int, reserved: int) -> None:
        passed = self._end_of(most) - self._started
        held = self._size * -(-(longest + most - 1) // self.rules.block_tokens) + reserved
        seen = self.occupancy
        seen.busy_ps += passed
        seen.batch_ps += passed * self._size
        seen.blocks_ps += passed * held
        seen.most_blocks = max(seen.most_blocks, held)
        seen.steps += most
        seen.plans += 1
        seen.decoded_tokens += self._size * (most - 1)

    def _end_of(self, tokens: int) -> int:
        """Return when the batch has emitted so many tokens of each request."""
        if tokens == 0:
            return self._started
        costs, size, longest, steps = self.costs, self._size, self._longest, tokens - 1
        attended = costs.attended_ps * (longest * (longest + 1) // 2)
        attended += costs.local_attended_ps * pairs_within(0, longest, costs.window_tokens)
        contexts = steps * longest + steps * (steps + 1) // 2
        local = pairs_within(longest, steps, costs.window_tokens)
        decode = steps * costs.decode_ps[size]
        decode += size * (costs.context_ps * contexts + costs.local_context_ps * local)
        return self._started + self._alone(size * longest) + size * attended + decode

    def _alone(self, tokens: int) -> int:
        table = self.costs.alone_ps
        beyond = tokens - len(table) + 1
        return table[tokens] if beyond <= 0 else table[-1] + beyond * (table[-1] - table[-2])
