"""What must never get worse: relaxing a spec, narrower weights, a larger batch.

Plans are proven to a gap, so two of them compare by bound and cost: no fleet of the relaxed spec is dearer than the tight one's
cost, hence the proven lower bound of the relaxed spec is not above that cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planned import problem_of

from planner.catalog import Catalog
from planner.physics.memory import hbm_budget
from planner.physics.types import Layout
from planner.pipeline import Options, make_plan, prepare
from planner.plan.schema import Objective
from planner.spec import load_spec

COST_RTOL = 1e-6
RATING_RTOL = 1e-3


@dataclass(frozen=True)
class Case:
    """A small spec: rates in requests/s, limits in seconds, stock of the owned rack in nodes."""

    chat_rate: float
    batch_rate: float
    ttft_s: float
    tpot_s: float
    rack_nodes: int
    offers: tuple[str, ...]
    spares: int

    @property
    def text(self) -> str:
        """The spec."""
        clouds = "".join(
            f"    - {{name: {gpu}, provider: aws, gpus: [{gpu}], region: us-east-1}}\n" for gpu in self.offers
        )
        return f"""\
version: 1
fleet: monotone
models:
  chat: {{use: llama-3.1-8b-instruct, max_model_len: 8k}}
workloads:
  ask:
    model: chat
    traffic: {{rate: {self.chat_rate!r} req/s, input_tokens: {{mean: 800, p95: 2000}}, output_tokens: {{mean: 200, p95: 450}}}}
    slo: {{ttft_p95: {self.ttft_s!r} s, tpot_p95: {self.tpot_s!r} s}}
  batch:
    model: chat
    traffic: {{rate: {self.batch_rate!r} req/s, input_tokens: 2000, output_tokens: 300}}
supply:
  offers:
{clouds}\
    - {{name: rack, provider: aws, gpus: [A10G], region: us-east-1, instances: [g5.xlarge], nodes: {self.rack_nodes}, price: 0.2 USD/gpu/h}}
reliability: {{spare_replicas: {self.spares}}}
planning: {{gap: 0.1 %}}
"""


CASES = (
    Case(10.0, 3.0, 1.0, 0.05, 2, ("L40S", "A10G"), 0),
    Case(2.0, 0.5, 0.5, 0.03, 1, ("L4", "L40S"), 1),
    Case(30.0, 9.0, 2.0, 0.1, 4, ("L40S",), 1),
    Case(55.0, 0.5, 1.0, 0.05, 1, ("L4", "L40S"), 0),
    Case(30.0, 3.0, 0.5, 0.03, 4, ("L40S", "A10G"), 1),
)


@cache
def planned(case: Case, catalog: Catalog) -> Objective:
    plan = make_plan(prepare(load_spec(case.text, "case.yaml"), catalog), Options())
    assert plan.objective is not None
    return plan.objective


def assert_no_dearer(relaxed: Case, tight: Case, catalog: Catalog) -> None:
    one, two = planned(relaxed, catalog), planned(tight, catalog)
    assert relaxed != tight
    assert one.bound <= two.value * (1.0 + COST_RTOL)
    assert one.bound <= one.value


@pytest.mark.parametrize(("case", "share"), list(zip(CASES, (0.95, 0.7, 0.3, 0.95, 0.7), strict=True)))
def test_less_demand(case: Case, share: float, catalog: Catalog) -> None:
    assert_no_dearer(replace(case, chat_rate=share * case.chat_rate, batch_rate=share * case.batch_rate), case, catalog)


@pytest.mark.parametrize(("case", "factor"), list(zip(CASES, (1.02, 1.5, 4.0, 1.02, 1.5), strict=True)))
def test_looser_limits(case: Case, factor: float, catalog: Catalog) -> None:
    assert_no_dearer(replace(case, ttft_s=factor * case.ttft_s, tpot_s=factor * case.tpot_s), case, catalog)


@pytest.mark.parametrize(("case", "more"), list(zip(CASES, (1, 3, 1, 3, 1), strict=True)))
def test_more_stock(case: Case, more: int, catalog: Catalog) -> None:
    assert_no_dearer(replace(case, rack_nodes=case.rack_nodes + more), case, catalog)


@pytest.mark.parametrize("case", CASES)
def test_one_more_offer(case: Case, catalog: Catalog) -> None:
    assert_no_dearer(replace(case, offers=(*case.offers, "H100-SXM-80GB")), case, catalog)


@pytest.mark.parametrize("case", [case for case in CASES if case.spares])
def test_fewer_spares(case: Case, catalog: Catalog) -> None:
    assert_no_dearer(replace(case, spares=0), case, catalog)


MODELS = (
    "llama-3.1-8b-instruct", "llama-3.3-70b", "qwen3-32b", "mixtral-8x7b-instruct-v0.1", "deepseek-r1", "gemma-3-27b-it",
)  # fmt: skip


@given(
    st.sampled_from(MODELS),
    st.sampled_from(["H100-SXM-80GB", "A100-SXM-80GB", "MI300X"]),
    st.sampled_from([1, 2, 4, 8]),
)
@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_narrower_weights_never_use_more_memory(catalog: Catalog, name: str, gpu: str, tensor: int) -> None:
    def weights_and_room(weights: str) -> tuple[float, float]:
        engine = catalog.engine("vllm", "0.33")
        architecture, device = catalog.model(name).architecture(), catalog.gpu(gpu).device()
        budget = hbm_budget(architecture, device, Layout(tensor), weights, "bf16", engine.memory, 256, 8192, 8192)
        return budget.weights_bytes, budget.kv_pool_bytes

    by_format = [weights_and_room(f) for f in ("bf16", "fp8", "int4")]
    for (wide, room), (narrow, more_room) in pairwise(by_format):
        assert narrow <= wide
        assert more_room >= room


def best_rates(cap: int, case: Case, catalog: Catalog) -> dict[tuple[str, str], float]:
    """Return the highest rate of one replica by shape and workload, with this batch cap."""
    engine = f"max_model_len: 8k, parallelism: {{tensor: [1]}}, engine: {{max_num_seqs: {cap}}}"
    found: dict[tuple[str, str], float] = {}
    for candidate in problem_of(case.text.replace("max_model_len: 8k", engine), catalog)[1].candidates:
        for workload, service in candidate.services.items():
            key = candidate.shape.name, workload
            found[key] = max(found.get(key, 0.0), 1.0 / service.busy_s)
    return found


@pytest.mark.parametrize("tpot_s", [0.04, 0.2])
def test_a_larger_batch_cap_never_lowers_the_rate_of_a_replica(tpot_s: float, catalog: Catalog) -> None:
    case = Case(60.0, 9.0, 2.0, tpot_s, 4, ("L40S", "L4"), 0)
    rates = [best_rates(cap, case, catalog) for cap in (2, 8, 32, 128)]
    for few_slots, more_slots in pairwise(rates):
        common = few_slots.keys() & more_slots.keys()
        assert common
        for key in sorted(common):
            assert more_slots[key] >= few_slots[key] * (1.0 - RATING_RTOL), key
