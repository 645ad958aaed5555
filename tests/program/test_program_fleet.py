"""Objective, bounds and derived sets of the program, and the way from candidates to its numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
from planned import SHARED, SMALL, problem_of
from problems import ASK, CLOUD_A, EVERYTHING, GIANT, MIXED, POOLED, WIDE
from problems import SMALL as SMALL_COLUMN
from scipy.optimize import linprog

from planner.catalog import Catalog
from planner.program.compile import compile_problem
from planner.program.data import FleetProblem, Service, node_cost
from planner.program.fleet import build, write_lp
from planner.program.index import ProgramIndex, ceil_count, most_weighted_rate, row_needs

TIE_BREAK_SHARE = 1e-3


@pytest.mark.parametrize(
    ("objective", "cost"), [("cost", [5.0, 30.0, 8.0]), ("gpus", [4.0, 8.0, 8.0]), ("power", [1200.0, 5600.0, 5600.0])]
)
def test_nodes_count_by_the_objective(objective: str, cost: list[float]) -> None:
    problem = replace(EVERYTHING, objective=objective)
    assert [node_cost(problem, offer) for offer in problem.offers] == cost


def test_objective_is_the_cost_of_nodes_and_a_small_tie_break() -> None:
    model = build(EVERYTHING)
    for offer, count in zip(EVERYTHING.offers, (3, 1, 2), strict=True):
        model.nodes[offer.name].set_value(count)
    assert pyo.value(model.objective) == pytest.approx(3 * 5.0 + 30.0 + 2 * 8.0, abs=TIE_BREAK_SHARE)
    assert pyo.value(model.objective) > 3 * 5.0 + 30.0 + 2 * 8.0


def test_equal_cost_prefers_fewer_gpus_then_the_first_name() -> None:
    offers = tuple(replace(CLOUD_A, name=name, gpus_per_node=gpus) for name, gpus in (("a", 4), ("b", 4), ("c", 8)))
    columns, rules = (SMALL_COLUMN, WIDE), EVERYTHING.rules[:1]
    problem = FleetProblem(columns, EVERYTHING.demands[:2], rules, offers)
    program = compile_problem(problem)
    costs = [c for (name, _), c in zip(program.columns, program.cost, strict=True) if name == "nodes"]
    assert costs == sorted(set(costs))
    assert len(costs) == len(offers)


def test_rows_need_replicas() -> None:
    assert row_needs(SMALL_COLUMN, ASK) == pytest.approx(
        (2.0 * 0.2 / 20.0, 2.0 / 64.0, 40.0 / 800.0, 5.0 / 100.0, 0.05)
    )


@pytest.mark.parametrize(("value", "count"), [(0.0, 0), (-1.0, 0), (2.0, 2), (2.0 + 1e-10, 2), (2.001, 3), (2.999, 3)])
def test_counts_round_up_but_forgive_noise(value: float, count: int) -> None:
    assert ceil_count(value) == count


def test_most_replicas_serve_everything_alone_with_spares() -> None:
    most = ProgramIndex(EVERYTHING).most_replicas
    assert most["small"] == math.ceil(110.0 * 0.05 + 11.0 * 30.0 / 100.0) + 2
    assert most["wide"] == math.ceil(110.0 * 0.05 + 11.0 * 30.0 / 150.0) + 2
    assert most["pooled"] == math.ceil(110.0 * 0.05) + 2
    assert most["giant"] == math.ceil(2.0 * 20.0 * 2.0 / 50.0)


@pytest.mark.parametrize("seed", range(20))
def test_most_weighted_rate_bounds_the_linear_program(seed: int) -> None:
    """The bound must never be below the true maximum, and is close to it where time and HBM decide."""
    rng = np.random.default_rng(seed)
    services = {w: Service(*rng.lognormal(0.0, 1.0, 5)) for w in ("a", "b")}
    column = replace(
        WIDE, services=services, kv_pool_bytes=3.0, batch_slots=4.0, bandwidth_bytes_per_s=5.0, flops_per_s=2.0
    )
    weights = {"a": 1.0, "b": float(rng.uniform(0.1, 3.0))}
    rows = np.array([row_needs(column, services[w]) for w in ("a", "b")]).T
    best = linprog([-weights["a"], -weights["b"]], A_ub=rows, b_ub=np.ones(5), bounds=(0, None))
    assert most_weighted_rate(column, weights) >= -best.fun * (1.0 - 1e-9)


def test_most_weighted_rate_of_one_workload_is_its_tightest_row() -> None:
    assert most_weighted_rate(WIDE, {"ask": 1.0}) == pytest.approx(1.0 / max(row_needs(WIDE, ASK)))
    assert most_weighted_rate(POOLED, {"batch": 1.0}) == 0.0


def test_lp_file_has_every_row_and_readable_names(tmp_path: Path) -> None:
    write_lp(EVERYTHING, tmp_path / "fleet.lp")
    text = (tmp_path / "fleet.lp").read_text()
    assert "c_u_hbm_budget(small)_:" in text
    assert "nodes(cloud_a)" in text


def test_an_empty_problem_builds() -> None:
    empty = FleetProblem(columns=(), demands=(), rules=(), offers=())
    assert pyo.value(build(empty).objective) == 0.0


class TestFromCandidates:
    """The way from the candidate table to the numbers of the program."""

    def test_columns_are_the_candidates(self, catalog: Catalog) -> None:
        _, table, problem = problem_of(SHARED, catalog)
        assert [c.name for c in problem.columns] == [c.name for c in table.candidates]
        for column, candidate in zip(problem.columns, table.candidates, strict=True):
            assert column.gpus == candidate.shape.gpus == candidate.shape.layout.gpus
            assert column.batch_slots == candidate.max_num_seqs
            assert column.services == candidate.services

    def test_demand_limits_and_budget(self, catalog: Catalog) -> None:
        _, _, problem = problem_of(SHARED, catalog)
        demands = {d.workload: d for d in problem.demands}
        assert demands["assistant"].planned_requests_per_s == pytest.approx(77.0)
        assert problem.budget_usd_per_h == pytest.approx(60_000 / 730.0)
        assert problem.gpu_limits == {"L40S": 64}
        assert problem.max_gpu_types == 2
        assert {r.model: r.spare_replicas for r in problem.rules} == {"chat": 1, "code": 0}

    def test_a_dearer_twin_of_unlimited_stock_is_left_out(self, catalog: Catalog) -> None:
        both = SMALL.replace("regions: [us-east-1]", "regions: [us-east-1, eu-central-1]")
        _, table, problem = problem_of(both, catalog)
        assert len(table.supply.offers) > len(problem.offers)
        best = {(o.cell, o.gpus_per_node): o.usd_per_node_h for o in problem.offers}
        assert len(best) == len(problem.offers)
        assert all(o.usd_per_node_h >= best[o.cell, o.gpus_per_node] for o in table.supply.offers)

    def test_offers_with_stock_are_all_kept(self, catalog: Catalog) -> None:
        limited = SMALL.replace("gpus: [L40S, A10G]", "nodes: 9, gpus: [L40S, A10G]")
        _, table, problem = problem_of(limited, catalog)
        assert {o.name for o in problem.offers} == {o.name for o in table.supply.offers}

    def test_committed_nodes_that_nothing_can_use_are_paid_all_the_same(self, catalog: Catalog) -> None:
        unused = "    - {name: old, provider: owned, gpus: [T4], gpus_per_node: 4, nodes: 2, price: 0.1 USD/gpu/h}\n"
        _, _, problem = problem_of(SMALL.replace("planning:", f"{unused}planning:"), catalog)
        assert "old/owned" in {o.name for o in problem.offers}


def test_columns_of_a_model() -> None:
    assert [c.name for c in EVERYTHING.columns_of("chat")] == ["pooled", "small", "wide"]
    assert [d.workload for d in EVERYTHING.demands_of("giant")] == ["long"]


def test_only_pools_at_the_mix_of_the_demands_bound_their_shape() -> None:
    """With so many replicas one pool would serve everything: not one that is rated for another mix."""
    assert ("chat", WIDE.shape) in ProgramIndex(EVERYTHING).most_of_shape
    assert ("chat", WIDE.shape) not in ProgramIndex(MIXED).most_of_shape
    shares = {"ask": 110.0 / 121.0, "batch": 11.0 / 121.0}
    exact = replace(WIDE, services={w: replace(s, mix_share=shares[w]) for w, s in WIDE.services.items()})
    assert ("chat", WIDE.shape) in ProgramIndex(replace(EVERYTHING, columns=(GIANT, exact))).most_of_shape
