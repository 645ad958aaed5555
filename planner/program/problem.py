"""From the candidate table to the numbers of the program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.candidates.types import Candidate, CandidateTable, ResolvedWorkload
from planner.catalog import Catalog
from planner.program.data import Column, Demand, FleetProblem, ModelRules, Outage, Quota, shares_of_steps
from planner.program.limits import UNITS, cost_shares_of, least_per_gpu, node_offers, quotas_of
from planner.spec import FleetSpec


def gpu_limits(spec: FleetSpec, catalog: Catalog) -> dict[str, int]:
    """Return the most GPUs by type, under the names of the catalog."""
    return {catalog.gpu(name).name: most for name, most in sorted(spec.supply.limits.gpus.items())}


def fleet_problem(
    spec: FleetSpec, table: CandidateTable, gpu_limits: dict[str, int], paid: frozenset[str] = frozenset()
) -> FleetProblem:
    """Return the problem to solve; `gpu_limits` are those of the spec under catalog names.

    Offers with nodes that are `paid` for today are in it even where cheaper ones replace them.
    """
    budget = spec.supply.budget_usd_per_month
    quotas, cost_shares = quotas_of(spec, table), cost_shares_of(spec, table)
    return FleetProblem(
        columns=tuple(_column(c, _penalty(c, spec, table)) for c in table.candidates),
        demands=tuple(_demand(w) for w in table.workloads.values()),
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
        offers=node_offers(table, quotas, cost_shares, paid),
        stock=table.supply.stock,
        gpu_limits=gpu_limits,
        max_gpu_types=spec.supply.limits.gpu_types,
        budget_usd_per_h=None if budget is None else budget / spec.planning.hours_per_month,
        max_power_w=spec.supply.limits.power_w,
        quotas=quotas,
        cost_shares=cost_shares,
        outages=tuple(
            Outage(name, zone)
            for name, model in table.models.items()
            if model.reliability.survive == "zone"
            for zone in sorted({c.domain.zone for c in table.candidates if c.shape.model == name})
        ),
        objective=spec.planning.objective,
        step_shares=shares_of_steps(table.supply.offers),
    )


def on_no_more_nodes(problem: FleetProblem, nodes: Iterable[tuple[str, int]]) -> FleetProblem:
    """Return the problem with nothing to buy from but these offers, and at most so many nodes of each."""
    most = {offer: count for offer, count in nodes if count > 0}
    offers = tuple(o for o in problem.offers if o.name in most)
    cells = {o.cell for o in offers}
    held = tuple(Quota(f"nodes of {o.name}", UNITS["nodes"], {o.name: 1.0}, float(most[o.name])) for o in offers)
    return replace(
        problem,
        offers=offers,
        columns=tuple(
            replace(c, cells=tuple(cell for cell in c.cells if cell in cells))
            for c in problem.columns
            if cells.intersection(c.cells)
        ),
        quotas=(*problem.quotas, *held),
    )


def with_services(problem: FleetProblem, table: CandidateTable) -> FleetProblem:
    """Return the problem with the services that the candidates of `table` now have."""
    services = {c.name: c.services for c in table.candidates}
    return replace(problem, columns=tuple(replace(c, services=services[c.name]) for c in problem.columns))


def _column(candidate: Candidate, penalty: float) -> Column:
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
        cells_by_period=candidate.cells_by_period,
        kv_pool_bytes=candidate.kv_pool_bytes,
        batch_slots=float(candidate.max_num_seqs),
        bandwidth_bytes_per_s=candidate.bandwidth_bytes_per_s,
        flops_per_s=candidate.flops_per_s,
        services=candidate.services,
        penalty=penalty,
        spot=candidate.domain.spot,
        zone=candidate.domain.zone,
        node_replicas=candidate.node_replicas,
    )


def _demand(workload: ResolvedWorkload) -> Demand:
    spot = workload.spec.spot
    return Demand(
        workload.name,
        workload.model,
        workload.peak_requests_per_s,
        workload.headroom,
        spot_share=spot.max_share if spot is not None else 0.0,
        on_demand_floor=spot is not None and spot.on_demand_floor,
    )


def _penalty(candidate: Candidate, spec: FleetSpec, table: CandidateTable) -> float:
    """Return what a replica counts for lying on a GPU that is not preferred: a share of the least its GPUs cost."""
    shape, prefer = candidate.shape, spec.models[candidate.shape.model].prefer
    if prefer is None or shape.gpu in table.models[shape.model].preferred_gpus:
        return 0.0
    periods = sorted({o.period for o in table.supply.offers if o.cell in candidate.cells})
    return prefer.penalty * shape.gpus * sum(least_per_gpu(spec, table, shape.gpu, period) for period in periods)
