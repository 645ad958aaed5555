"""Tiny fleet problems as literals. Numbers are round, so that a golden LP can be checked by eye."""

from __future__ import annotations

from dataclasses import replace

from planner.program.data import (
    BlockBound,
    Column,
    CostShare,
    Demand,
    FleetProblem,
    Kept,
    KeptPool,
    ModelRules,
    NodeOffer,
    Outage,
    Quota,
    Service,
    Stock,
)

GB = 1e9
TFLOP = 1e12

ASK = Service(busy_s=0.05, residence_s=2.0, kv_bytes=0.2 * GB, streamed_bytes=40.0 * GB, flops=5.0 * TFLOP)
BATCH = Service(busy_s=0.20, residence_s=10.0, kv_bytes=0.5 * GB, streamed_bytes=90.0 * GB, flops=30.0 * TFLOP)
LONG = Service(busy_s=0.40, residence_s=20.0, kv_bytes=2.0 * GB, streamed_bytes=200.0 * GB, flops=80.0 * TFLOP)

SMALL = Column(
    name="small", model="chat", shape="A-tp1-bf16", gpu="A", weights="bf16", kv_cache="bf16", node_gpus=1,
    nodes_spanned=1, min_replicas=1, cells=("A",), kv_pool_bytes=20.0 * GB, batch_slots=64.0,
    bandwidth_bytes_per_s=800.0 * GB, flops_per_s=100.0 * TFLOP, services={"ask": ASK, "batch": BATCH},
)  # fmt: skip
WIDE = Column(
    name="wide", model="chat", shape="A-tp2-fp8", gpu="A", weights="fp8", kv_cache="bf16", node_gpus=2,
    nodes_spanned=1, min_replicas=1, cells=("A",), kv_pool_bytes=30.0 * GB, batch_slots=128.0,
    bandwidth_bytes_per_s=800.0 * GB, flops_per_s=150.0 * TFLOP, services={"ask": ASK, "batch": BATCH},
)  # fmt: skip
POOLED = Column(
    name="pooled", model="chat", shape="B-tp1-fp8", gpu="B", weights="fp8", kv_cache="fp8", node_gpus=1,
    nodes_spanned=1, min_replicas=4, cells=("B-any", "B-eu"), kv_pool_bytes=60.0 * GB, batch_slots=200.0,
    bandwidth_bytes_per_s=3000.0 * GB, flops_per_s=800.0 * TFLOP, services={"ask": ASK},
)  # fmt: skip
GIANT = Column(
    name="giant", model="giant", shape="B-tp8pp2-bf16", gpu="B", weights="bf16", kv_cache="bf16", node_gpus=8,
    nodes_spanned=2, min_replicas=1, cells=("B-eu",), kv_pool_bytes=50.0 * GB, batch_slots=32.0,
    bandwidth_bytes_per_s=3000.0 * GB, flops_per_s=800.0 * TFLOP, services={"long": LONG},
)  # fmt: skip

CLOUD_A = NodeOffer("cloud-a", "cloud-a", "A", "A", gpus_per_node=4, usd_per_node_h=5.0, power_w=1200.0)
CLOUD_B = NodeOffer("cloud-b", "cloud-b", "B", "B-any", gpus_per_node=8, usd_per_node_h=30.0, power_w=5600.0)
RACK = NodeOffer("rack", "rack", "B", "B-eu", gpus_per_node=8, usd_per_node_h=8.0, power_w=5600.0)

CHAT_RULES = ModelRules("chat", max_shapes=2, uniform_format=True, spare_replicas=2, min_replicas=3)
GIANT_RULES = ModelRules("giant", max_shapes=1, uniform_format=True, spare_replicas=0, min_replicas=1)

LONG_DEMAND = Demand("long", "giant", requests_per_s=2.0, headroom=0.0)

EVERYTHING = FleetProblem(
    columns=(GIANT, POOLED, SMALL, WIDE),
    demands=(
        Demand("ask", "chat", requests_per_s=100.0, headroom=0.10),
        Demand("batch", "chat", requests_per_s=10.0, headroom=0.10),
        LONG_DEMAND,
    ),
    rules=(CHAT_RULES, GIANT_RULES),
    offers=(CLOUD_A, CLOUD_B, RACK),
    stock=(Stock("rack", committed=1, available=4),),
    gpu_limits={"A": 40},
    max_gpu_types=2,
    budget_usd_per_h=200.0,
    max_power_w=40e3,
    quotas=(Quota("rules.0", "vCPUs", {"cloud-a": 48.0, "cloud-b": 192.0}, most=960.0),),
    losses=("small",),
    block_bounds=(BlockBound("chat", {"pooled": 1.0, "small": 1.25, "wide": 2.5}, least=9.0),),
)
"""Every kind of row at once: cells, spares, formats, pool classes, replicas over nodes, losses, bounds and limits."""

SHARED_COST = replace(EVERYTHING, cost_shares=(CostShare("rules.1", frozenset({"cloud-a"}), share=0.6),))
"""With a limit on shares of the cost, where nodes are worth more than what lies on them."""

FAILING = replace(
    EVERYTHING,
    columns=(GIANT, replace(POOLED, spot=True, zone="b/eu"), replace(SMALL, zone="a/us"), replace(WIDE, zone="b/eu")),
    demands=(replace(EVERYTHING.demands[0], spot_share=0.5, on_demand_floor=True), *EVERYTHING.demands[1:]),
    outages=(Outage("chat", "b/eu"),),
    routed_outages=(Outage("chat", "b/eu"),),
)
"""With spot nodes, and a zone whose loss a model is to survive."""

RARE = replace(
    FAILING,
    demands=(FAILING.demands[0], replace(FAILING.demands[1], requests_per_s=1e-6), LONG_DEMAND),
)
"""With a workload that asks for next to nothing."""

KEPT = replace(
    EVERYTHING,
    kept=Kept(
        pools=(
            KeptPool("chat|A-tp1-bf16", ("small",), replicas=12, same=frozenset({"small"})),
            KeptPool("chat|B-tp1-fp8", ("pooled",), replicas=4),
        ),
        nodes={"cloud-a": 3, "rack": 1},
        models=frozenset({"chat"}),
        scale=60.0,
        most=63.0,
    ),
)
"""With a fleet that runs and is to change little: of model `chat`, on two kinds of nodes."""

DAY_A = replace(CLOUD_A, name="cloud-a@day", cell="A@day", period="day", share=0.5, reserved="cloud-a")
NIGHT_A = replace(DAY_A, name="cloud-a@night", cell="A@night", period="night")
DAY_FLEX = replace(DAY_A, name="flex@day", usd_per_node_h=4.0, reserved="")
NIGHT_FLEX = replace(NIGHT_A, name="flex@night", usd_per_node_h=4.0, reserved="")
PERIODS = replace(
    EVERYTHING,
    columns=(
        replace(SMALL, cells=("A@day", "A@night"), cells_by_period=(("A@day",), ("A@night",))),
        replace(WIDE, cells=("A@day",)),
    ),
    demands=EVERYTHING.demands[:2],
    rules=(CHAT_RULES,),
    offers=(DAY_A, NIGHT_A, DAY_FLEX, NIGHT_FLEX),
    stock=(),
    quotas=(),
    losses=(),
    block_bounds=(),
)
"""With nodes that are bought for all periods or for one, and a candidate that runs in all of them."""

YEAR_1 = replace(
    CLOUD_A,
    name="cloud-a@m01",
    cell="A@m01",
    period="m01",
    share=1 / 3,
    step="m01",
    term_steps=2,
    reserved="cloud-a@m01",
)
YEAR_2 = replace(YEAR_1, name="cloud-a@m02", cell="A@m02", period="m02", step="m02", reserved="cloud-a@m02")
YEAR_3 = replace(YEAR_1, name="cloud-a@m03", cell="A@m03", period="m03", step="m03", reserved="cloud-a@m03")
GROWING = replace(
    PERIODS,
    columns=(replace(WIDE, cells=("A@m03",)),),
    offers=(YEAR_1, YEAR_2, YEAR_3),
    rules=(CHAT_RULES,),
)
"""With steps of a growing demand, in which nodes are bought for two steps each."""

BLEND = {"ask": replace(ASK, mix_share=0.8), "batch": replace(BATCH, mix_share=0.2)}
MIXED = replace(EVERYTHING, columns=(GIANT, POOLED, SMALL, replace(WIDE, services=BLEND)))
"""With a candidate that is rated for one mix of its workloads."""

STATED_OVER = {
    "cover": MIXED,
    "demand": MIXED,
    "step_time": MIXED,
    "term": GROWING,
    "reserved": PERIODS,
    "cost_share": SHARED_COST,
    "node_change": KEPT,
    "pool_change": KEPT,
    "stay_within": KEPT,
    "node_use": SHARED_COST,
    "spare_capacity": FAILING,
    "spare_demand": FAILING,
    "spare_spot": FAILING,
    "spot_cover": FAILING,
    "spot_share": FAILING,
    "whole_replica": RARE,
    "zone_cover": FAILING,
}
"""The problem of constraints that `EVERYTHING` does not show, by name."""
