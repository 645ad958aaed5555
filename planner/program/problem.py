"""From the candidate table to the numbers of the program."""

from __future__ import annotations

from dataclasses import replace

from planner.candidates.types import Candidate, CandidateTable, PricedOffer
from planner.catalog import Catalog
from planner.program.data import Column, Demand, FleetProblem, ModelRules, NodeOffer
from planner.spec import FleetSpec


def gpu_limits(spec: FleetSpec, catalog: Catalog) -> dict[str, int]:
    """Return the most GPUs by type, under the names of the catalog."""
    return {catalog.gpu(name).name: most for name, most in sorted(spec.supply.limits.gpus.items())}


def fleet_problem(spec: FleetSpec, table: CandidateTable, gpu_limits: dict[str, int]) -> FleetProblem:
    """Return the problem to solve; `gpu_limits` are those of the spec under catalog names."""
    used = {c.cells for c in table.candidates}
    cells = {cell for group in used for cell in group}
    budget = spec.supply.budget_usd_per_month
    return FleetProblem(
        columns=tuple(_column(c) for c in table.candidates),
        demands=tuple(Demand(w.name, w.model, w.peak_requests_per_s, w.headroom) for w in table.workloads.values()),
        rules=tuple(
            ModelRules(
                name,
                model.spec.max_shapes,
                model.spec.uniform_format,
                model.reliability.spare_replicas,
                model.reliability.min_replicas,
            )
            for name, model in table.models.items()
            if any(w.model == name for w in table.workloads.values())
        ),
        offers=tuple(_node_offer(o, table) for o in _useful_offers(table, cells)),
        stock=table.supply.stock,
        gpu_limits=gpu_limits,
        max_gpu_types=spec.supply.limits.gpu_types,
        budget_usd_per_h=None if budget is None else budget / spec.planning.hours_per_month,
        objective=spec.planning.objective,
    )


def with_services(problem: FleetProblem, table: CandidateTable) -> FleetProblem:
    """Return the problem with the services that the candidates of `table` now have."""
    services = {c.name: c.services for c in table.candidates}
    return replace(problem, columns=tuple(replace(c, services=services[c.name]) for c in problem.columns))


def _useful_offers(table: CandidateTable, cells: set[str]) -> list[PricedOffer]:
    """Leave out offers that no candidate may use, unless they are paid for anyway, and those that a cheaper twin replaces.

    A twin is an offer of unlimited stock in the same cell with nodes of the same size at no higher price.
    """
    counted = {s.entry for s in table.supply.stock}
    committed = {s.entry for s in table.supply.stock if s.committed > 0}
    cheapest: dict[tuple[str, int], PricedOffer] = {}
    for offer in sorted(table.supply.offers, key=lambda o: (o.usd_per_node_h, o.name)):
        if offer.entry not in counted:
            cheapest.setdefault((offer.cell, offer.gpus_per_node), offer)
    return [
        o
        for o in table.supply.offers
        if o.entry in committed or (o.cell in cells and (o.entry in counted or cheapest[o.cell, o.gpus_per_node] is o))
    ]


def _column(candidate: Candidate) -> Column:
    shape = candidate.shape
    return Column(
        name=candidate.name,
        model=shape.model,
        shape=shape.name,
        gpu=shape.gpu,
        weights=shape.weights,
        kv_cache=shape.kv_cache,
        node_gpus=shape.node_gpus,
        nodes_spanned=shape.nodes_spanned,
        min_replicas=candidate.min_replicas,
        cells=candidate.cells,
        kv_pool_bytes=candidate.kv_pool_bytes,
        batch_slots=float(candidate.max_num_seqs),
        bandwidth_bytes_per_s=candidate.bandwidth_bytes_per_s,
        flops_per_s=candidate.flops_per_s,
        services=candidate.services,
    )


def _node_offer(offer: PricedOffer, table: CandidateTable) -> NodeOffer:
    power = next((c.shape.device.tdp_w for c in table.candidates if c.shape.gpu == offer.gpu), 0.0)
    return NodeOffer(offer.name, offer.entry, offer.gpu, offer.cell, offer.gpus_per_node, offer.usd_per_node_h, power)
