"""Requests over the engines of one pool: a router, and one of the engines failing on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from planner.simulate.engine import NEVER, Engine
from planner.simulate.static import StaticEngine
from planner.simulate.types import Batching, EngineRules, Occupancy, Requests, Router, Served, StepCosts

AnyEngine = Engine | StaticEngine


@dataclass(frozen=True)
class Failure:
    """When engines die, ps, and which ones: those of a replica together."""

    at_ps: int
    engines: tuple[int, ...]


@dataclass(frozen=True)
class Replay:
    """What became of the requests of a pool, and what each engine did."""

    served: Served
    occupancy: tuple[Occupancy, ...]


def replay(
    costs: StepCosts,
    rules: EngineRules,
    requests: Requests,
    engines: int,
    router: Router,
    failure: Failure | None = None,
) -> Replay:
    """Serve requests, in order of arrival, with engines that are alike, some of which may fail; what they had starts again.

    Every request must fit the blocks of an empty engine. Where none is left, what it had never ends; nothing may arrive then.
    """
    return _Pool(costs, rules, requests, engines, router).run(failure)


class _Pool:
    def __init__(self, costs: StepCosts, rules: EngineRules, requests: Requests, engines: int, router: Router) -> None:
        self.requests = requests
        self.served = Served.none_of(len(requests))
        self.outstanding = [0] * engines
        generated = [0] * len(requests)
        self.engines: list[AnyEngine] = [
            StaticEngine(costs, rules, requests, self.served, n, self.outstanding)
            if rules.batching is Batching.STATIC
            else Engine(costs, rules, requests, self.served, n, self.outstanding, generated)
            for n in range(engines)
        ]
        self.alive = list(range(engines))
        self.routed = 0
        self.due: list[tuple[int, int]] = []  # heap of (end of a jump, engine); jumps that were cut are there twice
        self.choose: Callable[[int], int] = {
            Router.ROUND_ROBIN: self._in_turn,
            Router.LEAST_OUTSTANDING: self._least_outstanding,
            Router.SHORTEST_KV: self._shortest_kv,
        }[router]

    def run(self, failure: Failure | None) -> Replay:
        arrivals = self.requests.arrival_ps
        first_after = len(arrivals) if failure is None else _first_at(arrivals, failure.at_ps)
        self._route(range(first_after))
        if failure is not None:
            self._pass_until(failure.at_ps)
            self._fail(failure)
            self._route(range(first_after, len(arrivals)))
        self._pass_until(NEVER)
        return Replay(self.served, tuple(e.occupancy for e in self.engines))

    def _route(self, requests: Sequence[int]) -> None:
        arrivals = self.requests.arrival_ps
        for request in requests:
            now = arrivals[request]
            if self.due and self.due[0][0] < now:
                self._pass_until(now)
            self._offer(request, now)

    def _offer(self, request: int, now: int) -> None:
        number = self.choose(now)
        self.routed += 1
        engine = self.engines[number]
        before = engine.due
        engine.offer(request, now)
        if engine.due != before:
            heappush(self.due, (engine.due, number))

    def _pass_until(self, then: int) -> None:
        """Pass every boundary before `then`."""
        due, engines = self.due, self.engines
        while due and due[0][0] < then:
            at, number = heappop(due)
            engine = engines[number]
            if engine.due != at:
                continue
            engine.advance()
            if engine.due != NEVER:
                heappush(due, (engine.due, number))

    def _fail(self, failure: Failure) -> None:
        lost = [request for number in failure.engines for request in self.engines[number].fail()]
        self.alive = [number for number in self.alive if number not in failure.engines]
        for request in sorted(lost) if self.alive else ():
            self._offer(request, failure.at_ps)

    def _in_turn(self, _now: int) -> int:
        return self.alive[self.routed % len(self.alive)]

    def _least_outstanding(self, _now: int) -> int:
        if len(self.alive) == len(self.outstanding):
            return self.outstanding.index(min(self.outstanding))
        return min(self.alive, key=lambda n: (self.outstanding[n], n))

    def _shortest_kv(self, now: int) -> int:
        return min(self.alive, key=lambda n: (self.engines[n].resident_tokens(now), n))


def _first_at(arrivals: Sequence[int], then: int) -> int:
    """Return the first request that arrives at `then` or later."""
    return next((i for i, at in enumerate(arrivals) if at >= then), len(arrivals))
