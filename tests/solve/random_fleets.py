"""Random tiny fleet problems, with every rule on in some of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.program.data import Column, Demand, FleetProblem, ModelRules, NodeOffer, Service, Stock

FORMATS = ("bf16", "fp8")
NODE_SIZES = (1, 2, 4, 6, 8)
WIDE_NODE_GPUS = 4


def random_fleet(seed: int) -> FleetProblem:
    """Return a problem of one or two models with one or two workloads, 2 to 4 candidates and 2 or 3 offers."""
    rng = np.random.default_rng(seed)
    models = ("m", "n") if rng.random() < 0.4 else ("m",)
    spanning = rng.random() < 0.2
    offers, stock = _offers(rng, spanning)
    cells: dict[str, list[str]] = {}
    for offer in offers:
        cells.setdefault(offer.gpu, []).append(offer.cell)
    demands: list[Demand] = []
    columns: list[Column] = []
    rules: list[ModelRules] = []
    for model in models:
        own = _demands(rng, model)
        rule = ModelRules(
            model,
            max_shapes=int(rng.choice([1, 2, 9])),
            uniform_format=bool(rng.random() < 0.5),
            spare_replicas=int(rng.choice([0, 0, 1, 2])),
            min_replicas=int(rng.choice([1, 1, 2, 3])),
        )
        count = int(rng.integers(1, 3)) if len(models) == 2 else int(rng.integers(2, 5))
        columns += [_column(rng, model, k, own, rule, cells, spanning and k == 0) for k in range(count)]
        demands += own
        rules.append(rule)
    gpus = sorted(cells)
    return FleetProblem(
        columns=tuple(sorted(columns, key=lambda c: c.name)),
        demands=tuple(demands),
        rules=tuple(rules),
        offers=offers,
        stock=stock,
        gpu_limits={str(rng.choice(gpus)): int(rng.integers(2, 12))} if rng.random() < 0.3 else {},
        max_gpu_types=1 if rng.random() < 0.25 else None,
        objective=str(rng.choice(["cost", "cost", "cost", "gpus", "power"])),
    )


def with_budget(problem: FleetProblem, usd_per_h: float) -> FleetProblem:
    """Return the problem with a budget."""
    return replace(problem, budget_usd_per_h=usd_per_h)


def _demands(rng: np.random.Generator, model: str) -> list[Demand]:
    headroom = float(rng.choice([0.0, 0.1, 0.3]))
    names = [f"{model}-ask", f"{model}-batch"][: int(rng.integers(1, 3))]
    return [Demand(name, model, float(rng.uniform(1.0, 10.0)), headroom) for name in names]


def _offers(rng: np.random.Generator, spanning: bool) -> tuple[tuple[NodeOffer, ...], tuple[Stock, ...]]:
    offers: list[NodeOffer] = []
    stock: list[Stock] = []
    for k in range(int(rng.integers(2, 4))):
        gpu = ("A", "B", str(rng.choice(["A", "B"])))[k]
        cell = f"{gpu}#{rng.integers(1, 3)}" if k == 2 else f"{gpu}#1"
        entry = f"e{rng.integers(0, k + 1)}"
        size = WIDE_NODE_GPUS if spanning else int(rng.choice(NODE_SIZES))
        price = size * float(rng.uniform(0.5, 4.0)) * (0.0 if rng.random() < 0.1 else 1.0)
        offers.append(NodeOffer(f"o{k}", entry, gpu, cell, size, round(price, 2), float(rng.choice([300.0, 700.0]))))
    for entry in sorted({o.entry for o in offers}):
        free = any(o.usd_per_node_h == 0.0 for o in offers if o.entry == entry)
        if free or rng.random() < 0.35:
            available = int(rng.integers(1, 5))
            committed = available if free else int(rng.integers(0, available + 1))
            stock.append(Stock(entry, committed, available if free or rng.random() < 0.8 else None))
    return tuple(offers), tuple(stock)


def _column(
    rng: np.random.Generator,
    model: str,
    k: int,
    demands: list[Demand],
    rule: ModelRules,
    cells: dict[str, list[str]],
    spanning: bool,
) -> Column:
    gpu = str(rng.choice(sorted(cells)))
    where = sorted(set(cells[gpu]))
    if len(where) > 1 and rng.random() < 0.4:
        where = [str(rng.choice(where))]
    served = [d for d in demands if k == 0 or rng.random() < 0.7] or demands
    weights, kv_cache = str(rng.choice(FORMATS)), str(rng.choice(FORMATS))
    size = WIDE_NODE_GPUS if spanning else int(rng.choice([1, 2, 4]))
    pool = int(rng.choice([1, 1, 1, 2, 4]))
    shape = f"{gpu}-tp{size}{'pp2' if spanning else ''}-{weights}-kv{kv_cache}"
    return Column(
        name=f"{model}|{k}|{shape}",
        model=model,
        shape=shape,
        gpu=gpu,
        weights=weights,
        kv_cache=kv_cache,
        node_gpus=size,
        nodes_spanned=2 if spanning else 1,
        min_replicas=pool + rule.spare_replicas if pool > 1 else 1,
        cells=tuple(where),
        kv_pool_bytes=1.0e9,
        batch_slots=float(rng.integers(8, 64)),
        bandwidth_bytes_per_s=1.0e12,
        flops_per_s=1.0e14,
        services={d.workload: _service(rng, d, size) for d in served},
    )


def _service(rng: np.random.Generator, demand: Demand, size: int) -> Service:
    """Draw what a request costs so that the whole demand needs a few replicas, by whichever row is the tightest."""
    replicas = rng.uniform(0.2, 3.0) / size**0.5
    busy, held, streamed, computed = replicas * rng.uniform(0.5, 1.0, 4) / demand.requests_per_s
    residence = float(rng.uniform(1.0, 10.0))
    return Service(
        busy_s=float(busy),
        residence_s=residence,
        kv_bytes=float(held / residence * 1.0e9),
        streamed_bytes=float(streamed * 1.0e12),
        flops=float(computed * 1.0e14),
    )
