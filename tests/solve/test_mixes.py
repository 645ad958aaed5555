"""Pools that workloads share get the mix they are rated for: in routings, and at the limits of the physics."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planned import SHARED, problem_of

from planner.candidates.knowledge import Knowledge
from planner.candidates.sharing import SKEW, mixes_of, shared_groups
from planner.catalog import Catalog
from planner.plan.assess import PoolLoad, missed
from planner.program.data import Column, Demand, FleetProblem, ModelRules, Service
from planner.program.index import row_needs
from planner.solve.routing import route, route_at_mix, route_freely

HALF_FULL = Service(busy_s=0.5, residence_s=0.0, kv_bytes=0.0, streamed_bytes=0.0, flops=0.0)
BLEND = {"a": replace(HALF_FULL, mix_share=0.75), "b": replace(HALF_FULL, mix_share=0.25)}


def column(name: str, services: dict[str, Service]) -> Column:
    return Column(
        name=name, model="m", shape=name, gpu="A", weights="fp8", kv_cache="fp8", node_gpus=1, nodes_spanned=1, min_replicas=1,
        cells=("A",), kv_pool_bytes=1.0, batch_slots=1.0, bandwidth_bytes_per_s=1.0, flops_per_s=1.0, services=services,
    )  # fmt: skip


PROBLEM = FleetProblem(
    columns=(column("blend", BLEND), column("solo", {"a": HALF_FULL})),
    demands=(Demand("a", "m", requests_per_s=4.0, headroom=0.0), Demand("b", "m", requests_per_s=1.0, headroom=0.0)),
    rules=(ModelRules("m", max_shapes=9, uniform_format=False, spare_replicas=0, min_replicas=1),),
    offers=(),
)


class TestRoutings:
    """A shared pool gets its mix where that carries the demand, and anything where it does not."""

    def test_at_the_mix_of_the_rating(self) -> None:
        found = route(PROBLEM, "m", {"blend": 2, "solo": 1}, {"a": 4.0, "b": 1.0})
        assert found.carries
        assert found.rates["a", "blend"] == pytest.approx(3.0 * found.rates["b", "blend"])
        assert found.rates["a", "solo"] == pytest.approx(1.0)

    def test_in_any_mix_where_the_rating_has_none_for_it(self) -> None:
        demand = {"a": 1.0, "b": 3.0}
        assert not route_at_mix(PROBLEM, "m", {"blend": 2}, demand).carries
        assert route(PROBLEM, "m", {"blend": 2}, demand) == route_freely(PROBLEM, "m", {"blend": 2}, demand)
        assert route(PROBLEM, "m", {"blend": 2}, demand).carries

    def test_a_free_routing_is_never_fuller(self) -> None:
        replicas, demand = {"blend": 2, "solo": 2}, {"a": 4.0, "b": 1.0}
        free, mixed = route_freely(PROBLEM, "m", replicas, demand), route_at_mix(PROBLEM, "m", replicas, demand)
        assert free.load <= mixed.load


class TestMixes:
    """Which mixes a group is rated for."""

    def test_pairs_are_rated_for_skewed_mixes_too(self) -> None:
        demand, less_of_first, less_of_second = mixes_of((0, 2), [6.0, 9.0, 2.0])
        assert demand == pytest.approx((0.75, 0.25))
        assert less_of_first[0] / less_of_first[1] == pytest.approx(SKEW * 3.0)
        assert less_of_second[0] / less_of_second[1] == pytest.approx(3.0 / SKEW)

    @pytest.mark.parametrize("count", [2, 3, 4])
    def test_shares_add_up(self, count: int) -> None:
        planned = [float(n + 1) for n in range(count)]
        for group in shared_groups(count):
            for mix in mixes_of(group, planned):
                assert len(mix) == len(group)
                assert sum(mix) == pytest.approx(1.0)

    def test_larger_groups_are_rated_for_the_demands_alone(self) -> None:
        assert len(mixes_of((0, 1, 2), [1.0, 2.0, 3.0])) == 1


def test_full_pools_hold_every_limit_at_their_mix(catalog: Catalog) -> None:
    """The program may fill any candidate to its rating, in pools of the size that the rating is for."""
    spec, table, _ = problem_of(SHARED, catalog)
    constants = Knowledge.of(catalog, spec.planning.confidence).constants
    shared = [c for c in table.candidates if len(c.services) > 1]
    assert len({tuple(s.mix_share for s in c.services.values()) for c in shared}) == 3
    loads = []
    for c in shared:
        busy_s = sum(s.busy_s * (s.mix_share or 0.0) for s in c.services.values())
        rates = {w: c.min_replicas * (s.mix_share or 0.0) / busy_s for w, s in c.services.items()}
        loads.append(PoolLoad(c.name, c.shape, c.max_num_seqs, c.min_replicas, rates))
    assert missed(table.models["chat"], table.workloads, loads, constants) == [()] * len(loads)


def test_a_mix_is_carried_by_every_row(catalog: Catalog) -> None:
    """Step time is what a shared pool is short of: no other row asks for more than it at the mix."""
    _, _, problem = problem_of(SHARED, catalog)
    for c in problem.columns:
        for flow in (flow for flow in c.flows if len(flow) > 1):
            needs = [sum(share * row_needs(c, c.services[w])[k] for w, share in flow.items()) for k in range(5)]
            assert needs[4] > 0.0
            assert needs[2] <= needs[4]
