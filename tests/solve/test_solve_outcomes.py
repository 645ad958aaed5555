"""Every way a solve can end, each reached by real calls of the solver, and what an answer says about itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planned import SHARED, SMALL, ended, problem_of
from random_fleets import random_fleet

from planner.catalog import Catalog
from planner.program.data import Column, Demand, FleetProblem, ModelRules, NodeOffer, Service, Stock
from planner.solve.fleet import SolveLimits, mend, solve
from planner.solve.outcome import Infeasible, Solution, Solved, Unproven, Unsolved

GAP = SolveLimits(gap=1e-3)

ONE = Service(busy_s=1.0, residence_s=1.0, kv_bytes=1.0, streamed_bytes=1.0, flops=1.0)


def column(name: str, gpu: str = "A", need: float = 1.0, gpus: int = 1, least: int = 1, workload: str = "w") -> Column:
    """Return a candidate that takes `need` replicas per request/s."""
    return Column(
        name=name, model="m", shape=name, gpu=gpu, weights="bf16", kv_cache="bf16", node_gpus=gpus, nodes_spanned=1,
        min_replicas=least, cells=(gpu,), kv_pool_bytes=1e6, batch_slots=1e6, bandwidth_bytes_per_s=1e6,
        flops_per_s=1e6, services={workload: replace(ONE, busy_s=need)},
    )  # fmt: skip


def problem(*columns: Column, rate: float = 2.5, spares: int = 0, **changes: object) -> FleetProblem:
    """Return the problem of one model and one workload, with one kind of 4-GPU node per GPU type at 4 USD/h."""
    gpus = sorted({c.gpu for c in columns})
    base = FleetProblem(
        columns=columns,
        demands=(Demand("w", "m", rate, 0.0),),
        rules=(ModelRules("m", 9, False, spares, 1),),
        offers=tuple(NodeOffer(f"o{g}", f"e{g}", g, g, 4, 4.0) for g in gpus),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_solved() -> None:
    outcome, packing = ended(problem(column("a")), GAP)
    assert isinstance(outcome, Solved)
    assert packing is not None
    assert outcome.solution.replicas == {"a": 3}
    assert outcome.solution.nodes == {"oA": 1} == packing.count()
    assert outcome.solution.rates == {("w", "a"): pytest.approx(2.5)}
    assert outcome.solution.placed == {("a", "A"): 3}
    assert outcome.solution.cost == 4.0
    assert outcome.solution.gap <= GAP.gap


@pytest.mark.parametrize(
    "tight",
    [
        problem(column("a"), stock=(Stock("eA", 0, 1),), rate=4.5),
        problem(column("a"), column("b", "B"), stock=(Stock("eA", 0, 0), Stock("eB", 0, 0))),
        problem(column("a"), gpu_limits={"A": 3}),
        problem(column("a"), budget_usd_per_h=3.9),
        problem(column("a", gpus=8)),
    ],
    ids=["stock", "no stock at all", "gpu limit", "budget", "replica larger than any node"],
)
def test_infeasible(tight: FleetProblem) -> None:
    outcome, packing = ended(tight, GAP)
    assert isinstance(outcome, Infeasible)
    assert outcome.reason
    assert packing is None


def test_a_model_that_cannot_keep_its_own_rules_is_named() -> None:
    """Two workloads need two shapes, and one is allowed."""
    both = problem(column("a"), column("b", "B", workload="v"))
    demands = (*both.demands, Demand("v", "m", 1.0, 0.0))
    outcome, _ = ended(replace(both, demands=demands, rules=(ModelRules("m", 1, False, 0, 1),)), GAP)
    assert isinstance(outcome, Infeasible)
    assert "model m" in outcome.reason


def test_unproven() -> None:
    """A search that may look at one node has a fleet and a bound, and says that they are apart."""
    fleet = unproven_fleet()
    cut, packing = ended(fleet, SolveLimits(gap=1e-6, max_nodes=1))
    exact, _ = ended(fleet, GAP)
    assert isinstance(cut, Unproven)
    assert packing is not None
    assert "gap" in cut.reason
    assert isinstance(exact, Solved)
    assert cut.solution.bound <= exact.solution.cost <= cut.solution.cost * (1.0 + GAP.gap)
    assert cut.solution.gap > 1e-6


def unproven_fleet() -> FleetProblem:
    sizes = ((0.53, 1, 1.9), (0.31, 2, 3.1), (0.23, 4, 4.3), (0.37, 2, 2.7))
    columns = tuple(column(f"c{i}", f"G{i}", need, gpus) for i, (need, gpus, _) in enumerate(sizes))
    fleet = problem(*columns, rate=41.3)
    offers = tuple(
        replace(o, gpus_per_node=8 if i % 2 else 4, usd_per_node_h=4.0 * price)
        for i, (o, (_, _, price)) in enumerate(zip(fleet.offers, sizes, strict=True))
    )
    return replace(fleet, offers=offers)


def test_a_deadline_before_any_fleet_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.solve.fleet.LEAST_TIME_S", 0.0)
    outcome, packing = ended(unproven_fleet(), SolveLimits(gap=1e-6, deadline_s=0.0))
    assert isinstance(outcome, Unsolved | Unproven)
    assert ("limit" if isinstance(outcome, Unsolved) else "gap") in outcome.reason
    assert (packing is None) == isinstance(outcome, Unsolved)


def test_a_gap_of_nothing_can_be_proven() -> None:
    outcome, _ = ended(problem(column("a")), SolveLimits(gap=0.0))
    assert isinstance(outcome, Solved)
    assert outcome.solution.gap == 0.0


def test_a_workload_that_nothing_serves_is_infeasible() -> None:
    both = problem(column("a"))
    outcome, _ = ended(replace(both, demands=(*both.demands, Demand("v", "m", 1.0, 0.0))), GAP)
    assert isinstance(outcome, Infeasible)


def test_free_hardware_with_spares() -> None:
    """Owned nodes may be listed at no price; weights by price are then all zero."""
    both = problem(column("a"), column("b", workload="v"), spares=1)
    free = replace(both.offers[0], usd_per_node_h=0.0)
    demands = (*both.demands, Demand("v", "m", 1.0, 0.0))
    outcome, _ = ended(replace(both, offers=(free,), demands=demands, stock=(Stock("eA", 3, 3),)), GAP)
    assert isinstance(outcome, Solved)
    assert outcome.solution.replicas == {"a": 4, "b": 2}


def test_committed_nodes_are_paid_although_idle() -> None:
    outcome, packing = ended(problem(column("a"), stock=(Stock("eA", 3, 5),)), GAP)
    assert isinstance(outcome, Solved)
    assert packing is not None
    assert outcome.solution.nodes == {"oA": 3}
    assert outcome.solution.cost == 12.0
    assert sorted(node.idle_gpus for node in packing.nodes) == [1, 4, 4]


def test_spares_are_counted_by_pool() -> None:
    alone, _ = ended(problem(column("a"), spares=1), GAP)
    assert isinstance(alone, Solved)
    assert alone.solution.replicas == {"a": 4}


def test_a_pool_is_as_large_as_its_rating_asks() -> None:
    outcome, _ = ended(problem(column("a", least=6)), GAP)
    assert isinstance(outcome, Solved)
    assert outcome.solution.replicas == {"a": 6}


@pytest.mark.parametrize("objective", ["cost", "gpus", "power"])
def test_what_is_minimised(objective: str) -> None:
    """Each of three GPU types wins by one measure."""
    fleet = problem(column("a"), column("b", "B", 0.4, 4), column("c", "C"), rate=4.0, objective=objective)
    prices = {"A": (4.0, 500.0), "B": (9.0, 500.0), "C": (6.0, 90.0)}
    offers = tuple(
        replace(o, usd_per_node_h=prices[o.gpu][0], power_w=o.gpus_per_node * prices[o.gpu][1]) for o in fleet.offers
    )
    outcome, _ = ended(replace(fleet, offers=offers), GAP)
    assert isinstance(outcome, Solved)
    assert outcome.solution.cost == {"cost": 4.0, "gpus": 4.0, "power": 360.0}[objective]


def test_gap_of_a_free_fleet_is_none() -> None:
    assert Solution({}, {}, {}, {}, cost=0.0, bound=0.0).gap == 0.0
    assert Solution({}, {}, {}, {}, cost=4.0, bound=3.0).gap == 0.25


@pytest.mark.parametrize("text", [SMALL, SHARED], ids=["small", "shared"])
def test_rates_serve_the_demand(text: str, catalog: Catalog) -> None:
    _, _, fleet = problem_of(text, catalog)
    outcome, _ = ended(fleet, GAP)
    assert isinstance(outcome, Solved)
    for demand in fleet.demands:
        served = sum(rate for (w, _), rate in outcome.solution.rates.items() if w == demand.workload)
        assert served == pytest.approx(demand.planned_requests_per_s)
    assert all(c in outcome.solution.replicas for _, c in outcome.solution.rates)


@pytest.mark.parametrize("seed", [3, 16, 40])
def test_solving_twice_gives_the_same_answer(seed: int) -> None:
    assert ended(random_fleet(seed), GAP) == ended(random_fleet(seed), GAP)


@pytest.mark.parametrize("factor", [1.0, 1.02, 1.6])
def test_mending_costs_no_more_than_solving_anew(factor: float, catalog: Catalog) -> None:
    """One model's replicas turn out slower: what is kept of the old fleet must still be within the gap."""
    _, _, fleet = problem_of(SHARED, catalog)
    before = solve(fleet, GAP)
    slower = tuple(
        replace(c, services={w: replace(s, busy_s=factor * s.busy_s) for w, s in c.services.items()})
        if c.model == "chat"
        else c
        for c in before.problem.columns
    )
    worse = replace(before.problem, columns=slower)
    mended, anew = mend(before, worse, GAP, {"chat"}), solve(replace(fleet, columns=slower), GAP)
    assert isinstance(before.outcome, Solved)
    assert isinstance(mended.outcome, Solved)
    assert isinstance(anew.outcome, Solved)
    assert mended.packing is not None
    assert mended.outcome.solution.cost >= before.outcome.solution.bound * (1.0 - 1e-9)
    assert mended.outcome.solution.cost <= anew.outcome.solution.cost * (1.0 + 2 * GAP.gap)
    assert mended.outcome.solution.bound <= anew.outcome.solution.cost
