"""The audit finds what is wrong with a plan: one thing is changed at a time, and the right check speaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from planned import FAILING, NODES, SHARED, Planned, PlanOnce, spec_of

from planner.catalog import Catalog
from planner.plan.audit import Violation, audit, in_words
from planner.plan.schema import Plan, Pool

Change = Callable[[Plan], Plan]


@pytest.fixture(scope="module")
def planned(plan_once: PlanOnce) -> Planned:
    """Pools chat-1 on the owned rack, chat-2 on a bought node, and code on the rack."""
    found = plan_once(SHARED)
    assert [(p.name, p.gpu) for p in found.plan.pools] == [
        ("chat-1", "H100-SXM-80GB"),
        ("chat-2", "L40S"),
        ("code", "H100-SXM-80GB"),
    ]
    assert [n.offer for n in found.plan.nodes] == ["cloud/us-east-1/g6e.xlarge/on-demand", "rack/owned"]
    return found


def violations(planned: Planned, catalog: Catalog, plan: Plan | None = None, **other: Any) -> tuple[Violation, ...]:
    given = {"spec": planned.spec, "table": planned.table, "reroutes": planned.reroutes} | other
    constants = planned.knowledge.constants
    return audit(plan or planned.plan, given["spec"], given["table"], catalog, constants, given["reroutes"])


def pool(index: int, **changes: Any) -> Change:
    """Return a change of fields of one pool; a callable value is applied to the old one."""
    return lambda plan: plan.model_copy(update={"pools": changed(plan.pools, index, changes)})


def node(index: int, **changes: Any) -> Change:
    return lambda plan: plan.model_copy(update={"nodes": changed(plan.nodes, index, changes)})


def workload(index: int, **changes: Any) -> Change:
    return lambda plan: plan.model_copy(update={"workloads": changed(plan.workloads, index, changes)})


def commitment(**changes: Any) -> Change:
    return lambda plan: plan.model_copy(update={"commitments": changed(plan.commitments, 0, changes)})


def objective(**changes: Any) -> Change:
    return lambda plan: plan.model_copy(update={"objective": updated(plan.objective, changes)})


def both(*parts: Change) -> Change:
    def change(plan: Plan) -> Plan:
        for part in parts:
            plan = part(plan)
        return plan

    return change


def changed(parts: tuple[Any, ...], index: int, changes: dict[str, Any]) -> tuple[Any, ...]:
    return (*parts[:index], updated(parts[index], changes), *parts[index + 1 :])


def updated(part: Any, changes: dict[str, Any]) -> Any:
    return part.model_copy(update={k: v(getattr(part, k)) if callable(v) else v for k, v in changes.items()})


def times(factor: float) -> Callable[[Any], Any]:
    """Return the multiplication of a number, or of every value of a mapping."""
    return lambda old: {k: v * factor for k, v in old.items()} if isinstance(old, dict) else old * factor


def part(**changes: Any) -> Callable[[Any], Any]:
    return lambda old: updated(old, changes)


def first(**changes: Any) -> Callable[[Any], Any]:
    return lambda old: changed(old, 0, changes)


def drop_pool(index: int) -> Change:
    return lambda plan: plan.model_copy(update={"pools": plan.pools[:index] + plan.pools[index + 1 :]})


def drop_node(index: int) -> Change:
    return lambda plan: plan.model_copy(update={"nodes": plan.nodes[:index] + plan.nodes[index + 1 :]})


def more_nodes(index: int, count: int) -> Change:
    """Buy more nodes and pay for them, so that only what limits their number is broken."""

    def change(plan: Plan) -> Plan:
        price = plan.nodes[index].usd_per_node_hour
        extra = price * (count - plan.nodes[index].nodes)
        plan = node(index, nodes=count, usd_per_hour=lambda old: old + extra)(plan)
        return objective(usd_per_hour=lambda old: old + extra, value=lambda old: old + extra)(plan)

    return change


PLANTED: dict[str, tuple[Change, str]] = {
    "less traffic is served": (pool(0, workloads=times(0.99)), "demand"),
    "more traffic is served": (pool(2, workloads=times(1.01)), "demand"),
    "a workload is forgotten": (drop_pool(2), "demand"),
    "a pool gets too much traffic": (pool(0, workloads=times(4.0)), "latency"),
    "a pool has too few replicas": (pool(0, replicas=1), "latency"),
    "one node more than paid for": (node(0, nodes=2), "money"),
    "a node is cheaper than its price": (node(0, usd_per_hour=times(0.9)), "money"),
    "the fleet costs less than its nodes": (objective(usd_per_hour=times(0.9)), "money"),
    "the bound is above the cost": (objective(bound=times(1.1)), "money"),
    "a node is not bought": (drop_node(0), "placement"),
    "replicas lie where no node is": (pool(1, placement=first(region="eu-central-1")), "placement"),
    "replicas lie with another provider": (pool(0, placement=first(provider="aws")), "placement"),
    "the placement forgets a replica": (pool(0, placement=first(replicas=2)), "placement"),
    "replicas take more GPUs than their nodes have": (pool(1, gpus=2), "figures"),
    "a replica more than placed": (pool(0, replicas=4), "placement"),
    "more KV room than there is": (pool(0, hbm_bytes_per_gpu=part(kv_pool=times(1.01))), "memory"),
    "weights that are too small": (pool(0, hbm_bytes_per_gpu=part(weights=times(0.5))), "memory"),
    "parts that do not add up": (pool(2, hbm_bytes_per_gpu=part(activations=0.0)), "memory"),
    "a batch cap whose budget is another": (pool(0, max_num_seqs=8192), "memory"),
    "a longer context": (pool(2, max_model_len=10_000_000), "memory"),
    "a larger token budget": (pool(0, max_num_batched_tokens=65536), "memory"),
    "more nodes than the rack has": (more_nodes(1, 2), "stock"),
    "an owned node that is not paid for": (both(drop_node(1), drop_pool(0)), "commitment"),
    "more GPUs than the limit": (more_nodes(0, 65), "limits"),
    "more money than the budget": (more_nodes(0, 60), "budget"),
    "a commitment is not listed": (lambda plan: plan.model_copy(update={"commitments": ()}), "commitment"),
    "a commitment beyond what is paid for": (commitment(nodes=2), "commitment"),
    "another limit is shown": (workload(0, slo=first(limit_s=times(2.0))), "latency"),
    "a limit is not shown": (workload(0, slo=lambda old: old[1:]), "latency"),
    "a prediction beyond its limit": (workload(2, slo=first(predicted_s=times(100.0))), "latency"),
}  # fmt: skip


def test_the_plan_itself_holds(planned: Planned, catalog: Catalog) -> None:
    assert in_words(violations(planned, catalog)) == ""


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str, planned: Planned, catalog: Catalog) -> None:
    change, check = PLANTED[name]
    found = violations(planned, catalog, change(planned.plan))
    assert check in {v.check for v in found}, in_words(found)


UNKNOWN_SHAPES: dict[str, tuple[Change, str]] = {
    "pools in two formats": (pool(1, weights="bf16", kv_cache="bf16"), "shape"),
    "weights below the quality floor": (pool(2, weights="int4"), "shape"),
    "a layout that was never rated": (pool(0, tensor_parallel=4), "shape"),
    "a GPU that was never rated": (pool(1, gpu="A10G"), "shape"),
}


@pytest.mark.parametrize("name", UNKNOWN_SHAPES)
def test_shapes_that_are_no_candidates(name: str, planned: Planned, catalog: Catalog) -> None:
    change, check = UNKNOWN_SHAPES[name]
    found = violations(planned, catalog, change(planned.plan))
    assert check in {v.check for v in found}, in_words(found)


SHOWN: dict[str, Change] = {
    "price of a node": node(0, usd_per_node_hour=times(0.5)),
    "cost per month": objective(usd_per_month=times(0.5)),
    "value that was minimised": objective(value=times(0.5), bound=times(0.4)),
    "gap": objective(gap=0.5),
    "cost of a pool": pool(0, usd_per_hour=times(0.5)),
    "cost of a commitment": commitment(usd_per_month=times(0.5)),
    "idle nodes of a commitment": commitment(idle_nodes=1),
    "where a commitment breaks even": commitment(break_even_utilization=times(0.5)),
    "penalty of preferences": objective(preference_penalty=1.0, value=lambda old: old + 1.0),
    "committed cost": objective(committed_usd_per_month=times(0.5)),
    "idle cost": objective(idle_committed_usd_per_month=10.0),
    "GPUs of a pool": pool(0, gpus=1),
    "KV tokens": pool(0, kv_tokens=times(2.0)),
    "demand of a workload": workload(0, demand_requests_per_s=times(0.5)),
    "predicted latency": workload(0, slo=first(predicted_s=times(0.1))),
    "money per token": workload(0, usd_per_million_tokens=times(0.1)),
}
"""Figures that people act on; a plan that shows them wrong must not pass."""


@pytest.mark.parametrize("name", SHOWN)
def test_figures_shown(name: str, planned: Planned, catalog: Catalog) -> None:
    assert violations(planned, catalog, SHOWN[name](planned.plan))


STRICTER: dict[str, tuple[tuple[str, str], str]] = {
    "a tighter limit": (("ttft_p95: 1.5 s", "ttft_p95: 50 ms"), "latency"),
    "more demand": (("rate: 2 req/s", "rate: 3 req/s"), "demand"),
    "more headroom": (("headroom: 10 %", "headroom: 20 %"), "demand"),
    "a smaller budget": (("budget: 60k", "budget: 5k"), "budget"),
    "fewer GPUs": (("gpus: {L40S: 64}", "gpus: {L40S: 0}"), "limits"),
    "fewer GPU types": (("gpu_types: 2", "gpu_types: 1"), "limits"),
    "a quota of GPUs": (("gpu_types: 2}", "gpu_types: 2, rules: [{match: {provider: owned}, gpus: 3}]}"), "limits"),
    "a quota of nodes": (("gpu_types: 2}", "gpu_types: 2, rules: [{match: {region: us-*}, nodes: 0}]}"), "limits"),
    "a quota of vCPUs": (("gpu_types: 2}", "gpu_types: 2, rules: [{match: {country: US}, vcpus: 3}]}"), "limits"),
    "a quota of money": (("gpu_types: 2}", "gpu_types: 2, rules: [{match: {}, usd_per_month: 1k USD/month}]}"), "limits"),
    "a share of the cost": (("gpu_types: 2}", "gpu_types: 2, rules: [{match: {gpus: [h100-sxm]}, share: 50 %}]}"), "limits"),
    "less power": (("gpu_types: 2}", "gpu_types: 2, power: 3 kW}"), "limits"),
    "another country": (("deny: {terms: [3y]}", "allow: {countries: [FR]}"), "selector"),
    "no owned hardware for a workload": (("deny: {terms: [3y]}", "deny: {providers: [owned]}"), "selector"),
    "no cloud for a model": (("{use: llama-3.1-8b-instruct,", "{use: llama-3.1-8b-instruct, deny: {providers: [aws]},"), "selector"),
}  # fmt: skip
"""The same plan under a spec with one thing changed; tables are those of the first spec."""


@pytest.mark.parametrize("name", STRICTER)
def test_stricter_spec(name: str, planned: Planned, catalog: Catalog) -> None:
    (old, new), check = STRICTER[name]
    assert old in SHARED
    spec = spec_of(SHARED.replace(old, new), catalog)
    workloads = {n: replace(w, spec=spec.workloads[n]) for n, w in planned.table.workloads.items()}
    found = violations(planned, catalog, spec=spec, table=replace(planned.table, workloads=workloads))
    assert check in {v.check for v in found}, in_words(found)


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"max_shapes": 1}, "max_shapes"),
        ({"min_quality": 1.0}, "quality"),
    ],
)
def test_stricter_model(changes: dict[str, Any], check: str, planned: Planned, catalog: Catalog) -> None:
    chat = planned.table.models["chat"]
    stricter = replace(chat, spec=chat.spec.model_copy(update=changes))
    table = replace(planned.table, models={**planned.table.models, "chat": stricter})
    assert check in {v.check for v in violations(planned, catalog, table=table)}


@pytest.mark.parametrize(
    ("key", "value", "check"), [("min_replicas", 5, "min_replicas"), ("spare_replicas", 3, "spare")]
)
def test_stricter_reliability(key: str, value: int, check: str, planned: Planned, catalog: Catalog) -> None:
    chat = planned.table.models["chat"]
    stricter = replace(chat, reliability=chat.reliability.model_copy(update={key: value}))
    table = replace(planned.table, models={**planned.table.models, "chat": stricter})
    assert check in {v.check for v in violations(planned, catalog, table=table)}


class TestLosses:
    """Where traffic goes when spares are lost is checked, not believed."""

    def test_no_routing_at_all(self, planned: Planned, catalog: Catalog) -> None:
        found = violations(planned, catalog, reroutes={})
        assert {(v.check, v.subject) for v in found} == {("spare", "chat-1"), ("spare", "chat-2")}

    def test_traffic_that_is_dropped(self, planned: Planned, catalog: Catalog) -> None:
        less = {p: {w: 0.9 * r for w, r in own.items()} for p, own in planned.reroutes["chat-1"].items()}
        found = violations(planned, catalog, reroutes={**planned.reroutes, "chat-1": less})
        assert {(v.check, v.subject) for v in found} == {("spare", "chat-1")}

    def test_traffic_sent_to_what_is_gone(self, planned: Planned, catalog: Catalog) -> None:
        whole = {p.name: p.workloads for p in planned.plan.pools if p.model == "chat"}
        found = violations(planned, catalog, reroutes={**planned.reroutes, "chat-2": whole})
        assert any("no replica left" in v.reason for v in found)

    def test_traffic_that_overloads_the_rest(self, planned: Planned, catalog: Catalog) -> None:
        all_on_one = {"chat-2": {"assistant": 60.0, "batch": 5.0}}
        found = violations(planned, catalog, reroutes={**planned.reroutes, "chat-1": all_on_one})
        assert any("misses" in v.reason and v.check == "spare" for v in found)


def test_violations_read_as_sentences(planned: Planned, catalog: Catalog) -> None:
    found = violations(planned, catalog, PLANTED["more nodes than the rack has"][0](planned.plan))
    assert "stock rack: 2 nodes of 1" in in_words(found)


class TestLostNodes:
    """A node may be lost with all replicas that fit on it."""

    def test_the_plan_holds(self, plan_once: PlanOnce, catalog: Catalog) -> None:
        found = plan_once(NODES)
        assert in_words(violations(found, catalog)) == ""
        assert {p.gpus_per_node for p in found.plan.pools} == {n.gpus_per_node for n in found.plan.nodes}

    def test_larger_nodes_than_the_plan_counts_on(self, plan_once: PlanOnce, catalog: Catalog) -> None:
        found = plan_once(NODES)
        other = pool(0, gpus_per_node=lambda old: 8 if old != 8 else 4)(found.plan)
        assert {"placement", "selector"} & {v.check for v in violations(found, catalog, other)}

    def test_no_routing(self, plan_once: PlanOnce, catalog: Catalog) -> None:
        found = plan_once(NODES)
        assert {v.check for v in violations(found, catalog, reroutes={})} == {"spare"}


@pytest.fixture(scope="module")
def failing(plan_once: PlanOnce) -> Planned:
    found = plan_once(FAILING)
    assert {p.spot for p in found.plan.pools} == {True, False}
    assert len({at.region for p in found.plan.pools for at in p.placement}) == 2
    return found


class TestSpotAndZones:
    """Shares of spot nodes and the loss of zones are recomputed from pools, placement and routings."""

    def test_the_plan_itself_holds(self, failing: Planned, catalog: Catalog) -> None:
        assert in_words(violations(failing, catalog)) == ""

    def test_the_limit_on_spot_binds(self, failing: Planned) -> None:
        on_spot = sum(p.workloads["assistant"] for p in failing.plan.pools if p.spot)
        assert 0.0 < on_spot <= 0.4 * 60.0 * (1.0 + 1e-9)

    @pytest.mark.parametrize(
        ("spot", "check"), [("max_share: 10 %", "spot"), ("max_share: 10 %, on_demand_floor: false", "spot")]
    )
    def test_less_on_spot(self, spot: str, check: str, failing: Planned, catalog: Catalog) -> None:
        spec = spec_of(FAILING.replace("max_share: 40 %", spot), catalog)
        assert check in {v.check for v in violations(failing, catalog, spec=spec)}

    def test_no_spot_at_all(self, failing: Planned, catalog: Catalog) -> None:
        spec = spec_of(FAILING.replace("    spot: {max_share: 40 %}\n", ""), catalog)
        assert {"spot", "selector"} <= {v.check for v in violations(failing, catalog, spec=spec)}

    def test_a_floor_holds_in_every_loss(self, failing: Planned, catalog: Catalog) -> None:
        key, rates = next((k, r) for k, r in failing.reroutes.items())
        spot = {p.name for p in failing.plan.pools if p.spot}
        moved = {p: {w: 10.0 * r if p in spot else r for w, r in own.items()} for p, own in rates.items()}
        found = violations(failing, catalog, reroutes={**failing.reroutes, key: moved})
        assert "spot" in {v.check for v in found}

    def test_a_pool_that_claims_other_nodes(self, failing: Planned, catalog: Catalog) -> None:
        index = next(i for i, p in enumerate(failing.plan.pools) if p.spot)
        found = violations(failing, catalog, pool(index, spot=False)(failing.plan))
        assert {"placement", "selector"} & {v.check for v in found}

    def test_a_zone_without_a_routing(self, failing: Planned, catalog: Catalog) -> None:
        found = violations(failing, catalog, reroutes={})
        assert {v.check for v in found} == {"zone"}

    def test_traffic_sent_into_a_zone_that_is_gone(self, failing: Planned, catalog: Catalog) -> None:
        whole = {p.name: p.workloads for p in failing.plan.pools}
        found = violations(failing, catalog, reroutes=dict.fromkeys(failing.reroutes, whole))
        assert any("which is gone" in v.reason for v in found)

    def test_a_zone_whose_loss_overloads_the_rest(self, failing: Planned, catalog: Catalog) -> None:
        less = tuple(p.model_copy(update={"replicas": 1}) for p in failing.plan.pools)
        few = failing.plan.model_copy(update={"pools": tuple(_one_replica(p) for p in less)})
        assert any(v.check == "zone" and "misses" in v.reason for v in violations(failing, catalog, few))


def _one_replica(found: Pool) -> Pool:
    return found.model_copy(update={"placement": (found.placement[0].model_copy(update={"replicas": 1}),)})
