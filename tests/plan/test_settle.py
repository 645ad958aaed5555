"""From a solution to pools that hold: predictions at the mix they got, and capacities that only fall."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planned import SHARED, Planned, PlanOnce

from planner.candidates.types import Candidate
from planner.plan.assess import PoolLoad, assess, largest_share, missed
from planner.plan.rerate import Settled, Unsettled, settle
from planner.solve.outcome import Solution


@pytest.fixture(scope="module")
def planned(plan_once: PlanOnce) -> Planned:
    return plan_once(SHARED)


def candidate(planned: Planned, workloads: set[str]) -> Candidate:
    return next(c for c in planned.table.candidates if set(c.services) == workloads)


def pool(planned: Planned, replicas: int, **rates: float) -> PoolLoad:
    found = candidate(planned, {"assistant", "batch"})
    return PoolLoad("chat", found.shape, found.max_num_seqs, replicas, rates)


def test_a_settled_plan_needs_no_more_settling(planned: Planned) -> None:
    again = settle(planned.table, planned.problem, planned.solution, planned.knowledge.constants)
    assert isinstance(again, Settled)
    assert again.solution == planned.solution
    assert again.table == planned.table


def overrated(planned: Planned, factor: float) -> tuple[Planned, Solution]:
    """Return the plan as if replicas were rated too high, with all chat traffic on one replica of each pool."""
    candidates = tuple(
        replace(c, services={w: replace(s, busy_s=s.busy_s / factor) for w, s in c.services.items()})
        for c in planned.table.candidates
    )
    table = replace(planned.table, candidates=candidates)
    columns = tuple(
        replace(c, services=next(k.services for k in candidates if k.name == c.name)) for c in planned.problem.columns
    )
    return replace(planned, table=table, problem=replace(planned.problem, columns=columns)), planned.solution


def test_capacities_only_fall(planned: Planned) -> None:
    wrong, solution = overrated(planned, 10.0)
    few = replace(solution, replicas=dict.fromkeys(solution.replicas, 1))
    found = settle(wrong.table, wrong.problem, few, planned.knowledge.constants)
    assert isinstance(found, Unsettled)
    before = {(c.name, w): s.busy_s for c in wrong.table.candidates for w, s in c.services.items()}
    after = {(c.name, w): s.busy_s for c in found.table.candidates for w, s in c.services.items()}
    assert after.keys() <= before.keys()
    assert all(after[key] >= before[key] for key in after)
    assert any(after[key] > before[key] for key in after)


def test_more_traffic_is_slower(planned: Planned) -> None:
    model = planned.table.models["chat"]
    loads = [pool(planned, 4, assistant=rate, batch=0.1 * rate) for rate in (1.0, 10.0, 20.0, 30.0)]
    states = assess(model, planned.table.workloads, loads, planned.knowledge.constants)
    for metric in ("ttft_p95", "tpot_p95"):
        times = [state.latency_s["assistant", metric] for state in states]
        assert times == sorted(times)
    assert [s.mean_batch for s in states] == sorted(s.mean_batch for s in states)
    assert [s.overload for s in states] == sorted(s.overload for s in states)


def test_what_is_missed_agrees_with_what_is_predicted(planned: Planned) -> None:
    """The quick judgement by tails and the percentiles that are shown must not contradict each other."""
    model, workloads = planned.table.models["chat"], planned.table.workloads
    loads = [pool(planned, 2, assistant=rate, batch=0.5) for rate in (1.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)]
    states = assess(model, workloads, loads, planned.knowledge.constants)
    judged = missed(model, workloads, loads, planned.knowledge.constants)
    assert judged[0] == ()
    assert judged[-1] != ()
    for state, misses in zip(states, judged, strict=True):
        over = state.overload > 1.0
        late = any(seconds > workloads[w].spec.slo[key] for (w, key), seconds in state.latency_s.items())
        assert bool(misses) or not (over or late)


def test_largest_share_holds_and_more_does_not(planned: Planned) -> None:
    model, workloads, constants = planned.table.models["chat"], planned.table.workloads, planned.knowledge.constants
    load = pool(planned, 2, assistant=200.0, batch=5.0)
    share = largest_share(model, workloads, load, constants)
    assert 0.0 < share < 1.0

    def at(part: float) -> PoolLoad:
        return replace(load, rates={w: part * r for w, r in load.rates.items()})

    held, broken = missed(model, workloads, [at(share), at(share + 0.05)], constants)
    assert held == ()
    assert broken != ()


def test_a_pool_that_holds_everything_bears_nearly_all(planned: Planned) -> None:
    load = pool(planned, 4, assistant=1.0, batch=0.1)
    share = largest_share(planned.table.models["chat"], planned.table.workloads, load, planned.knowledge.constants)
    assert share > 0.95


def test_a_lone_replica_is_given_less(planned: Planned) -> None:
    """One replica at half of what two bear together is fuller: it has no other to fall back on."""
    model = planned.table.models["chat"]
    loads = [pool(planned, 1, assistant=5.0, batch=0.5), pool(planned, 2, assistant=10.0, batch=1.0)]
    one, two = assess(model, planned.table.workloads, loads, planned.knowledge.constants)
    assert one.overload > two.overload
    assert one.latency_s["assistant", "ttft_p95"] >= two.latency_s["assistant", "ttft_p95"]
