"""Engines that serve requests, replayed step by step and sequence by sequence: the slow reading of the same rules.

Every step touches every sequence and every prompt token. Nothing is jumped over and no sum has a closed form, so that
what is written here can be held against the rules line by line. It is what a faster simulator is checked against.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.simulate.types import Batching, EngineRules, Requests, Router, Served, StepCosts


def blocks_for(tokens: int, block_tokens: int) -> int:
    """Return how many blocks hold `tokens`."""
    blocks = 0
    while blocks * block_tokens < tokens:
        blocks += 1
    return blocks


@dataclass(eq=False)
class Sequence:
    """One request, where it stands and what became of it."""

    index: int
    input_tokens: int
    output_tokens: int
    hit_tokens: int
    shared_tokens: int
    reserved_blocks: int
    # Where it stands.
    generated: int = 0
    computed: int = 0  # of its prompt, hits included; counts only while it is admitted
    decodes: bool = False  # its prompt is whole
    admission: int = -1
    blocks: int = 0
    # What became of it.
    admitted_ps: int = -1
    first_ps: int = -1
    finish_ps: int = -1
    preemptions: int = 0
    engine: int = -1

    @property
    def tokens(self) -> int:
        """Its prompt with all it has generated: the prompt to compute, or the context of a step that decodes it."""
        return self.input_tokens + self.generated

    def needs_block(self, block_tokens: int) -> bool:
        """Whether the token that a decode step feeds opens a new block."""
        return (self.tokens - self.shared_tokens - 1) % block_tokens == 0

    def emit(self, now: int) -> None:
        """Emit one token, the first or the last among them."""
        self.generated += 1
        if self.first_ps == -1:
            self.first_ps = now
        if self.generated == self.output_tokens:
            self.finish_ps = now

    def start_again(self) -> None:
        """Forget what a dead engine did."""
        self.generated = 0
        self.computed = 0
        self.decodes = False
        self.admission = -1
        self.blocks = 0
        self.admitted_ps = -1
        self.first_ps = -1
        self.engine = -1


@dataclass
class Chunk:
    """Prompt tokens of one sequence in one step."""

    sequence: Sequence
    tokens: int


@dataclass
class Step:
    """The step that runs: who decodes, whose prompts are computed, and how long it takes."""

    decoding: list[Sequence]
    chunks: list[Chunk]
    duration_ps: int


class Engine:
    """One engine: its queue, the sequences that hold blocks, and the step that runs. Subclasses say how it batches."""

    def __init__(self, number: int, costs: StepCosts, rules: EngineRules) -> None:
        self.number = number
        self.costs = costs
        self.rules = rules
        self.lives = True
        self.waiting: list[Sequence] = []
        self.admitted: list[Sequence] = []
        self.free = rules.blocks
        self.admissions = 0
        self.step: Step | None = None
        self.boundary_ps: int | None = None  # the end of the step that runs, or the start of the first; None where idle

    def outstanding(self) -> list[Sequence]:
        """Return what it has and has not finished."""
        return [sequence for sequence in self.waiting + self.admitted if sequence.finish_ps == -1]

    def kv_tokens(self) -> int:
        """Return the tokens of contexts and of prompts it has, as of the last boundary."""
        return sum(sequence.tokens for sequence in self.outstanding())

    def receive(self, sequence: Sequence, now: int) -> None:
        """Queue a request; an idle engine has a boundary now."""
        assert self.lives
        assert sequence.output_tokens >= 1
        assert self.most_blocks(sequence) <= self.rules.blocks, "callers refuse what never fits"
        sequence.engine = self.number
        self.waiting.append(sequence)
        if self.boundary_ps is None:
            self.boundary_ps = now

    def die(self) -> list[Sequence]:
        """Lose the running step and everything that is not finished; return it in order of index, to start again."""
        orphans = sorted(self.outstanding(), key=lambda sequence: sequence.index)
        for sequence in orphans:
            sequence.start_again()
        self.lives = False
        self.waiting = []
        self.admitted = []
        self.free = self.rules.blocks
        self.step = None
        self.boundary_ps = None
        return orphans

    def pass_boundaries_before(self, time_ps: int | None) -> None:
        """Pass every boundary earlier than `time_ps`; all of them where there is no such time."""
        while self.boundary_ps is not None and (time_ps is None or self.boundary_ps < time_ps):
            self.pass_boundary(self.boundary_ps)

    def pass_boundary(self, now: int) -> None:
        """End the step that runs and start the next one, if there is anything to do."""
        if self.step is not None:
            self.end_step(self.step, now)
            self.check_blocks()
        self.step = self.next_step(now)
        self.check_blocks()
        if self.step is None:
            assert not self.waiting, "an empty engine admits its head"
            assert not self.admitted
            self.boundary_ps = None
        else:
            self.boundary_ps = now + self.step.duration_ps

    def check_blocks(self) -> None:
        """Blocks are conserved."""
        held = sum(sequence.blocks for sequence in self.admitted)
        assert self.free >= 0
        assert self.free + held == self.rules.blocks
        assert all(sequence.blocks == 0 for sequence in self.waiting)

    def take_blocks(self, sequence: Sequence, blocks: int) -> None:
        assert blocks <= self.free
        self.free -= blocks
        sequence.blocks += blocks

    def free_blocks(self, sequence: Sequence) -> None:
        self.free += sequence.blocks
        sequence.blocks = 0

    def admit_head(self, blocks: int, now: int) -> Sequence:
        """Admit the head of the queue with so many blocks."""
        sequence = self.waiting.pop(0)
        self.admitted.append(sequence)
        self.take_blocks(sequence, blocks)
        sequence.admission = self.admissions
        self.admissions += 1
        sequence.computed = sequence.hit_tokens
        sequence.decodes = False
        if sequence.admitted_ps == -1:
            sequence.admitted_ps = now
        return sequence

    def contexts_ps(self, contexts: list[int]) -> int:
        """Return what reading these contexts costs."""
        total = 0
        for context in contexts:
            total += self.costs.context_ps * context
            total += self.costs.local_context_ps * min(context, self.costs.window_tokens)
        return total

    def attention_ps(self, tokens: int, behind: int) -> int:
        """Return what `tokens` of a prompt cost that start behind so many: each attends to itself and all before it."""
        total = 0
        for position in range(behind + 1, behind + tokens + 1):
            total += self.costs.attended_ps * position
            total += self.costs.local_attended_ps * min(position, self.costs.window_tokens)
        return total

    def most_blocks(self, sequence: Sequence) -> int:
        """Return the blocks of a request at full length, alone."""
        raise NotImplementedError

    def next_step(self, now: int) -> Step | None:
        """Decide on the step that starts now; none where there is nothing to do."""
        raise NotImplementedError

    def end_step(self, step: Step, now: int) -> None:
        """Emit the tokens of a step that ends now."""
        raise NotImplementedError


class ContinuousEngine(Engine):
    """Requests join and leave at every step: `chunked` and `prompts_first`."""

    def most_blocks(self, sequence: Sequence) -> int:
        tokens = sequence.input_tokens + sequence.output_tokens - 1 - sequence.shared_tokens
        return blocks_for(tokens, self.rules.block_tokens) + sequence.reserved_blocks

    def blocks_to_admit(self, sequence: Sequence) -> int:
        own_tokens = sequence.tokens - sequence.shared_tokens
        return blocks_for(own_tokens, self.rules.block_tokens) + sequence.reserved_blocks

    def decoding(self) -> list[Sequence]:
        return [sequence for sequence in self.admitted if sequence.decodes]

    def partial(self) -> Sequence | None:
        """Return the prompt that earlier steps left unfinished; asked for before anything is admitted in a step."""
        unfinished = [sequence for sequence in self.admitted if not sequence.decodes]
        assert len(unfinished) <= 1
        return unfinished[0] if unfinished else None

    def blocks_needed(self) -> int:
        """Return how many sequences that decode need one more block."""
        return sum(1 for sequence in self.decoding() if sequence.needs_block(self.rules.block_tokens))

    def head_may_enter(self) -> bool:
        """Whether the head of the queue finds its blocks, those this step needs and the watermark left alone."""
        watermark = self.rules.watermark_blocks if self.admitted else 0
        return self.blocks_to_admit(self.waiting[0]) <= self.free - self.blocks_needed() - watermark

    def preempt_for_blocks(self) -> bool:
        """Send the most recently admitted back until those that decode have their blocks; say whether any was sent."""
        preempted = False
        while self.blocks_needed() > self.free:
            latest = max(self.admitted, key=lambda sequence: sequence.admission)
            self.admitted.remove(latest)
            self.free_blocks(latest)
            latest.computed = 0
            latest.decodes = False
            latest.preemptions += 1
            self.waiting.insert(0, latest)
            preempted = True
        return preempted

    def next_step(self, now: int) -> Step | None:
        if self.preempt_for_blocks():
            assert self.partial() is None
            assert self.decoding()
            return self.step_of(self.decoding(), [])
        decoding = self.decoding()
        if self.rules.batching == Batching.CHUNKED:
            chunks = self.take_chunks(now)
        else:
            chunks = self.take_whole_prompts(now)
            if chunks:
                decoding = []  # they wait for the prompts
        if not decoding and not chunks:
            return None
        return self.step_of(decoding, chunks)

    def take_chunks(self, now: int) -> list[Chunk]:
        """Fill the budget beside those that decode: the partial prompt first, then the queue."""
        chunks: list[Chunk] = []
        decoding = len(self.decoding())
        budget = self.rules.token_budget - decoding
        partial = self.partial()
        if budget > 0 and partial is not None:
            tokens = min(budget, partial.tokens - partial.computed)
            chunks.append(Chunk(partial, tokens))
            budget -= tokens
        while budget > 0 and self.waiting and decoding + len(chunks) < self.rules.slots and self.head_may_enter():
            sequence = self.admit_head(self.blocks_to_admit(self.waiting[0]), now)
            tokens = min(budget, sequence.tokens - sequence.computed)
            chunks.append(Chunk(sequence, tokens))
            budget -= tokens
        return chunks

    def take_whole_prompts(self, now: int) -> list[Chunk]:
        """Take prompts from the head while they fit the budget together; the first may be longer than it."""
        chunks: list[Chunk] = []
        taken = 0
        while self.waiting and len(self.admitted) < self.rules.slots and self.head_may_enter():
            head = self.waiting[0]
            tokens = head.tokens - head.hit_tokens
            if chunks and taken + tokens > self.rules.token_budget:
                break
            chunks.append(Chunk(self.admit_head(self.blocks_to_admit(head), now), tokens))
            taken += tokens
        return chunks

    def step_of(self, decoding: list[Sequence], chunks: list[Chunk]) -> Step:
        """Return the step with its duration."""
        costs = self.costs
        prompt_tokens = sum(chunk.tokens for chunk in chunks)
        if self.rules.batching == Batching.PROMPTS_FIRST and chunks:
            duration = costs.alone_ps[prompt_tokens]
        else:
            batch = len(decoding)
            duration = costs.decode_ps[batch] + self.contexts_ps([sequence.tokens for sequence in decoding])
            if prompt_tokens > 0:
                duration += costs.prompt_ps[batch + prompt_tokens] - costs.prompt_ps[batch]
        for chunk in chunks:
            duration += self.attention_ps(chunk.tokens, chunk.sequence.computed)
        return Step(decoding, chunks, duration)

    def end_step(self, step: Step, now: int) -> None:
        for sequence in step.decoding:
            if sequence.needs_block(self.rules.block_tokens):
                self.take_blocks(sequence, 1)
            sequence.emit(now)
        for chunk in step.chunks:
            sequence = chunk.sequence
            sequence.computed += chunk.tokens
            if sequence.computed == sequence.tokens:
                sequence.decodes = True
                sequence.emit(now)
        for sequence in list(self.admitted):
            if sequence.finish_ps != -1:
                self.admitted.remove(sequence)
                self.free_blocks(sequence)


class StaticEngine(Engine):
    """A batch is padded to its longest request and stays until that one is done: `static`."""

    def padded_blocks(self, batch: list[Sequence]) -> int:
        """Return the blocks of each request of a batch, without those reserved."""
        longest_input = max(sequence.input_tokens for sequence in batch)
        longest_output = max(sequence.output_tokens for sequence in batch)
        return blocks_for(longest_input + longest_output - 1, self.rules.block_tokens)

    def batch_blocks(self, batch: list[Sequence]) -> int:
        """Return the blocks of a batch."""
        padded = self.padded_blocks(batch)
        return sum(padded + sequence.reserved_blocks for sequence in batch)

    def most_blocks(self, sequence: Sequence) -> int:
        return self.batch_blocks([sequence])

    def alone_ps(self, tokens: int) -> int:
        """Return the time of so many prompt tokens; beyond the table each takes as long as its last one."""
        table = self.costs.alone_ps
        last = len(table) - 1
        if tokens <= last:
            return table[tokens]
        return table[last] + (tokens - last) * (table[last] - table[last - 1])

    def next_step(self, now: int) -> Step | None:
        if not self.admitted:
            return self.prompt_step(now)
        # All have decoded as often as the one that emits longest.
        padded_context = max(sequence.input_tokens for sequence in self.admitted)
        padded_context += max(sequence.generated for sequence in self.admitted)
        batch = len(self.admitted)
        duration = self.costs.decode_ps[batch] + self.contexts_ps([padded_context] * batch)
        return Step([sequence for sequence in self.admitted if sequence.finish_ps == -1], [], duration)

    def prompt_step(self, now: int) -> Step | None:
        """Take the next batch from the queue and compute its prompts."""
        batch: list[Sequence] = []
        for sequence in self.waiting:
            if len(batch) == self.rules.slots or self.batch_blocks([*batch, sequence]) > self.rules.blocks:
                break
            batch.append(sequence)
        if not batch:
            return None
        padded = self.padded_blocks(batch)
        for sequence in batch:
            self.admit_head(padded + sequence.reserved_blocks, now)
        longest = max(sequence.input_tokens for sequence in batch)
        duration = self.alone_ps(len(batch) * longest)
        for _ in batch:
            duration += self.attention_ps(longest, 0)
        return Step([], [Chunk(sequence, longest) for sequence in batch], duration)

    def end_step(self, step: Step, now: int) -> None:
        for sequence in step.decoding + [chunk.sequence for chunk in step.chunks]:
            sequence.emit(now)
        if all(sequence.finish_ps != -1 for sequence in self.admitted):
            for sequence in self.admitted:
                self.free_blocks(sequence)
            self.admitted = []


class Pool:
    """Engines behind one router."""

    def __init__(self, costs: StepCosts, rules: EngineRules, engines: int, router: Router) -> None:
        kind = StaticEngine if rules.batching == Batching.STATIC else ContinuousEngine
        self.engines: list[Engine] = [kind(number, costs, rules) for number in range(engines)]
        self.router = router
        self.routed = 0

    def pass_boundaries_before(self, time_ps: int | None) -> None:
        for engine in self.engines:
            engine.pass_boundaries_before(time_ps)

    def route(self, sequence: Sequence, now: int) -> None:
        """Give a request to an engine that lives; where none does it is never served."""
        living = [engine for engine in self.engines if engine.lives]
        if not living:
            return
        if self.router == Router.ROUND_ROBIN:
            chosen = living[self.routed % len(living)]
        elif self.router == Router.LEAST_OUTSTANDING:
            chosen = min(living, key=lambda engine: (len(engine.outstanding()), engine.number))
        else:
            chosen = min(living, key=lambda engine: (engine.kv_tokens(), engine.number))
        self.routed += 1
        chosen.receive(sequence, now)

    def fail(self, number: int, now: int) -> None:
        """Let an engine die and route what it had over the others."""
        self.pass_boundaries_before(now)
        for sequence in self.engines[number].die():
            self.route(sequence, now)


def replay_by_steps(
    costs: StepCosts,
    rules: EngineRules,
    requests: Requests,
    engines: int,
    router: Router,
    fail: tuple[int, int] | None = None,
) -> Served:
    """Return what becomes of the requests in a pool of engines, of which one dies at `fail` (time in ps, engine)."""
    sequences = [
        Sequence(
            index=index,
            input_tokens=requests.input_tokens[index],
            output_tokens=requests.output_tokens[index],
            hit_tokens=requests.hit_tokens[index],
            shared_tokens=requests.shared_tokens[index],
            reserved_blocks=requests.reserved_blocks[index],
        )
        for index in range(len(requests))
    ]
    pool = Pool(costs, rules, engines, router)
    failed = False
    for sequence in sorted(sequences, key=lambda each: (requests.arrival_ps[each.index], each.index)):
        arrival = requests.arrival_ps[sequence.index]
        if fail is not None and not failed and fail[0] <= arrival:
            pool.fail(fail[1], fail[0])
            failed = True
        pool.pass_boundaries_before(arrival)
        pool.route(sequence, arrival)
    if fail is not None and not failed:
        pool.fail(fail[1], fail[0])
    pool.pass_boundaries_before(None)
    return Served(
        admitted_ps=[sequence.admitted_ps for sequence in sequences],
        first_ps=[sequence.first_ps for sequence in sequences],
        finish_ps=[sequence.finish_ps for sequence in sequences],
        preemptions=[sequence.preemptions for sequence in sequences],
        engine=[sequence.engine for sequence in sequences],
    )
