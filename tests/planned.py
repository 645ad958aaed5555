"""Small fleets planned through the public stages, with what every stage found on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date

from planner.candidates.knowledge import Knowledge
from planner.candidates.table import build_table
from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.choose import MOST_ROUNDS
from planner.pipeline import prepare
from planner.plan.build import Context, build_plan
from planner.plan.pools import draft_pools
from planner.plan.rerate import Settled, settle
from planner.plan.schema import Digests, Plan, Versions
from planner.program.data import FleetProblem
from planner.program.problem import fleet_problem, with_services
from planner.solve.fleet import SolveLimits, solve
from planner.solve.outcome import Outcome, Solution, Solved
from planner.solve.packing import Packing
from planner.spec import FleetSpec, load_spec

DIGESTS = Digests(spec="s", catalog="c", calibration="k", inputs="i", plan="")
VERSIONS = Versions(planner="0", pyomo="0", highs="0")
AS_OF = date(2026, 7, 30)

HOURLY = """\
version: 1
fleet: hours
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic:
      hourly: [5, 5, 5, 5, 5, 5, 5, 5, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 5, 5, 5, 5, 5, 5]
      input_tokens: 1000
      output_tokens: 200
    slo: {ttft_p95: 1 s, tpot_p95: 50 ms}
supply:
  offers: [{name: cloud, provider: aws, region: us-east-1, gpus: [L40S, A10G]}]
"""
"""Demand of a day in two steps, a fleet for each."""

SMALL = """\
version: 1
fleet: small
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic: {rate: 20 req/s, input_tokens: {mean: 800, p95: 2000}, output_tokens: {mean: 200, p95: 450}}
    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}
supply:
  offers:
    - {name: cloud, provider: aws, gpus: [L40S, A10G], regions: [us-east-1]}
planning: {gap: 0.1 %}
"""
"""One model, one workload, two GPU types to choose from."""

SHARED = """\
version: 1
fleet: shared
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k}
  code: {use: qwen3-32b, max_model_len: 8k, weights: [bf16, fp8], kv_cache: [bf16], reliability: {spare_replicas: 0}}
workloads:
  assistant:
    model: chat
    traffic: {rate: 70 req/s, input_tokens: {mean: 800, p95: 2000}, output_tokens: {mean: 200, p95: 450}}
    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}
  batch:
    model: chat
    traffic: {rate: 5 req/s, input_tokens: {mean: 2000, p95: 4000}, output_tokens: {mean: 400, p95: 900}}
  complete:
    model: code
    traffic: {rate: 2 req/s, input_tokens: {mean: 1500, p95: 3000}, output_tokens: {mean: 100, p95: 250}}
    slo: {ttft_p95: 2 s, tpot_p95: 100 ms}
    deny: {terms: [3y]}
supply:
  offers:
    - {name: cloud, provider: aws, gpus: [L40S], regions: [us-east-1, us-west-2], terms: [on-demand]}
    - {name: rack, provider: owned, gpus: [H100-SXM-80GB], gpus_per_node: 4, nodes: 1, price: 1.5 USD/gpu/h, country: DE}
  limits: {gpus: {L40S: 64}, gpu_types: 2}
  budget: 60k USD/month
reliability: {spare_replicas: 1, headroom: 10 %}
planning: {gap: 0.1 %}
"""
"""Two models on owned and bought nodes, with spares, limits and a budget."""


FAILING = """\
version: 1
fleet: failing
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k, reliability: {survive: zone}}
workloads:
  assistant:
    model: chat
    traffic: {rate: 60 req/s, input_tokens: {mean: 800, p95: 2000}, output_tokens: {mean: 200, p95: 450}}
    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}
    spot: {max_share: 40 %}
supply:
  offers:
    - {name: cloud, provider: gcp, instances: [g2-standard-4], regions: [us-central1, us-east4], terms: [on-demand, spot]}
planning: {gap: 0.1 %}
"""
"""One model on spot and other nodes of two regions, either of which may be lost."""


NODES = """\
version: 1
fleet: nodes
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k, reliability: {survive: node}}
workloads:
  assistant:
    model: chat
    traffic: {rate: 60 req/s, input_tokens: {mean: 800, p95: 2000}, output_tokens: {mean: 200, p95: 450}}
    slo: {ttft_p95: 1.5 s, tpot_p95: 60 ms}
supply:
  offers:
    - {name: cloud, provider: aws, gpus: [L40S], region: us-east-1, instances: [g6e.xlarge, g6e.12xlarge, g6e.48xlarge]}
planning: {gap: 0.1 %}
"""
"""One model that must survive the loss of a node, with nodes of one, four and eight GPUs to choose from."""


@dataclass(frozen=True)
class Planned:
    """A planned spec: the problem as it was solved last, and the plan with everything its audit asks for."""

    spec: FleetSpec
    table: CandidateTable
    problem: FleetProblem
    solution: Solution
    packing: Packing
    plan: Plan
    knowledge: Knowledge
    reroutes: Mapping[str, Mapping[str, Mapping[str, float]]]


def spec_of(text: str, catalog: Catalog) -> FleetSpec:
    """Load a spec that must be free of mistakes."""
    return prepare(load_spec(text, "fleet.yaml"), catalog).spec


def problem_of(text: str, catalog: Catalog) -> tuple[FleetSpec, CandidateTable, FleetProblem]:
    """Return spec, candidates and program of a spec that must be free of mistakes."""
    spec = spec_of(text, catalog)
    table = build_table(spec, catalog, Knowledge.of(catalog, spec.planning.confidence))
    limits = {catalog.gpu(name).name: n for name, n in sorted(spec.supply.limits.gpus.items())}
    return spec, table, fleet_problem(spec, table, limits)


def ended(problem: FleetProblem, limits: SolveLimits) -> tuple[Outcome, Packing | None]:
    """Return how a solve ended, and the nodes that its replicas lie on."""
    answered = solve(problem, limits)
    return answered.outcome, answered.packing


def plan_text(text: str, catalog: Catalog) -> Planned:
    """Plan a spec that has a fleet, with as many rounds of correction as it takes."""
    spec, table, problem = problem_of(text, catalog)
    knowledge = Knowledge.of(catalog, spec.planning.confidence)
    for _ in range(MOST_ROUNDS):
        outcome, packing = ended(problem, SolveLimits(spec.planning.gap))
        assert isinstance(outcome, Solved)
        assert packing is not None
        found = settle(table, problem, outcome.solution, knowledge.constants)
        if isinstance(found, Settled):
            break
        problem = with_services(problem, found.table)
    assert isinstance(found, Settled)
    context = Context(spec, found.table, AS_OF, DIGESTS, VERSIONS)
    plan = build_plan(
        context,
        found.problem,
        found.solution,
        packing,
        draft_pools(found.table, found.pools, knowledge.constants),
        knowledge.constants,
        "solved",
    )
    return Planned(spec, found.table, found.problem, found.solution, packing, plan, knowledge, found.reroutes)


PlanOnce = Callable[[str], Planned]
"""Plans a spec given as text, each text once."""
