"""Replays of fleets: the same bytes on every machine, traces at another rate, failures, and queues that grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.diagnostics import DiagnosticError
from planner.physics.constants import SpeedConstants
from planner.physics.lengths import joint_truncation
from planner.pipeline import Options, make_plan, prepare, replayable
from planner.plan.assess import PoolLoad
from planner.plan.replayed import PoolReplay, Replayed
from planner.plan.schema import Plan
from planner.simulate.fleet import Settings, fewest_replicas, replay_fleet
from planner.simulate.planned import loads_of
from planner.simulate.run import check_failure, check_traces, replay_plan
from planner.simulate.trace import Trace, read_trace
from planner.simulate.traffic import Scaling, Stream, from_trace, generator, shares_of, synthetic
from planner.simulate.types import Batching, Router
from planner.spec import load_spec

TRACES = Path(__file__).parents[2] / "specs" / "traces"
SPEC = """\
version: 1
fleet: two
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic:
      rate: 30 req/s
      input_tokens: {mean: 1155, p95: 4083}
      output_tokens: {mean: 211, p95: 451}
      shared_prefix: {tokens: 200, hit_rate: 50 %}
    slo: {ttft_p95: 2 s, tpot_p95: 60 ms, itl_p95: 200 ms}
  batch:
    model: chat
    traffic: {rate: 2 req/s, input_tokens: 3000, output_tokens: 100}
supply:
  offers: [{name: cloud, provider: aws, region: us-east-1, gpus: [L40S, A10G]}]
reliability: {spare_replicas: 1, headroom: 10 %}
"""
QUICK = Settings(replications=2, requests=4000)


class Case:
    """A planned fleet, ready to be replayed."""

    def __init__(self, text: str, catalog: Catalog) -> None:
        prepared = prepare(load_spec(text, "fleet.yaml"), catalog)
        self.plan: Plan = make_plan(prepared, Options())
        table, constants = replayable(prepared, self.plan)
        self.table: CandidateTable = table
        self.constants: SpeedConstants = constants

    @property
    def loads(self) -> list[PoolLoad]:
        return loads_of(self.plan, self.table)

    def replay(self, settings: Settings, factor: float = 1.0) -> list[PoolReplay]:
        loads = [replace(p, rates={w: factor * rate for w, rate in p.rates.items()}) for p in self.loads]
        return replay_fleet(self.table.models, self.table.workloads, loads, self.constants, settings)

    def replay_plan(self, settings: Settings) -> Replayed:
        return replay_plan(self.plan, self.table, self.constants, settings)


@pytest.fixture(scope="module")
def case(catalog: Catalog) -> Case:
    return Case(SPEC, catalog)


@pytest.fixture(scope="module")
def azure() -> Trace:
    return read_trace(TRACES / "azure2023_conv_10min.csv")


def test_a_planned_fleet_holds_on_drawn_traffic(case: Case) -> None:
    found = case.replay_plan(QUICK)

    assert found.verdict == "pass"
    assert {limit.metric for p in found.pools for w in p.workloads for limit in w.limits} == {
        "ttft_p95",
        "tpot_p95",
        "itl_p95",
    }
    for pool in found.pools:
        assert 0.0 < pool.kv_mean_share < pool.kv_most_share <= 1.0
        assert pool.queue_growth_requests_per_s == pool.lost == 0
        for workload in pool.workloads:
            p50, p90 = (workload.percentiles_s[f"ttft_{p}"].value for p in ("p50", "p90"))
            assert 0.0 < p50 < p90


def test_the_same_bytes_however_many_processes(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for workers in ("1", "3"):
        monkeypatch.setenv("PLANNER_WORKERS", workers)
        found.append(case.replay_plan(QUICK).model_dump_json())

    assert found[0] == found[1]
    assert found[0] != case.replay_plan(replace(QUICK, seed=2)).model_dump_json()


def test_a_pool_that_cannot_keep_up_says_by_how_much(case: Case) -> None:
    for pool in case.replay(QUICK, factor=3.0):
        assert pool.verdict == "unstable"
        assert 0.0 < pool.queue_growth_requests_per_s < 3.0 * 1.1 * 32


def test_more_traffic_is_never_faster(case: Case) -> None:
    """The same requests, come closer together."""
    slow, fast = (case.replay(QUICK, factor)[0].workloads[0].percentiles_s["ttft_p95"].value for factor in (0.5, 1.2))

    assert slow < fast


def test_the_fewest_replicas_that_pass_do(case: Case) -> None:
    loads = [replace(p, rates={w: 2.5 * rate for w, rate in p.rates.items()}) for p in case.loads]
    known = (case.table.models, case.table.workloads)
    fewest = fewest_replicas(*known, loads, case.constants, QUICK, loads[0].name)
    assert fewest is not None
    assert loads[0].replicas < fewest < 4 * loads[0].replicas

    def worst(replicas: int) -> float:
        """Return the largest part of a limit that is taken."""
        tried = [replace(loads[0], replicas=replicas), *loads[1:]]
        pool = replay_fleet(*known, tried, case.constants, QUICK)[0]
        limits = [x for w in pool.workloads for x in w.limits]
        return max(x.replayed_s.value / x.limit_s for x in limits if x.replayed_s is not None)

    assert worst(fewest) <= 0.97 < worst(fewest - 1)


@pytest.mark.parametrize("router", list(Router))
@pytest.mark.parametrize("batching", [None, Batching.PROMPTS_FIRST])
def test_every_request_ends(router: Router, batching: Batching | None, case: Case) -> None:
    found = case.replay(replace(QUICK, router=router, batching=batching, replications=1))

    assert all(w.requests > 0 and w.refused == 0 for p in found for w in p.workloads)
    assert all(p.lost == 0 for p in found)


def test_static_batching_is_the_foil(case: Case) -> None:
    assert all(p.verdict != "pass" for p in case.replay(replace(QUICK, batching=Batching.STATIC)))


def test_a_trace_is_replayed_at_the_rate_of_its_workload(case: Case, azure: Trace) -> None:
    once = azure.input_tokens.size / 33.0
    found = case.replay_plan(replace(QUICK, traces={"assistant": azure}, duration_s=once))
    (use,) = found.traces

    assert use.sha256 == azure.sha256
    assert use.used == azure.input_tokens.size
    assert use.time_factor == pytest.approx(azure.requests_per_s / 33.0)
    assert sum(w.requests for p in found.pools for w in p.workloads if w.traced) == 2 * azure.input_tokens.size
    assert {w.traced for p in found.pools for w in p.workloads if w.name == "batch"} == {False}


def test_copies_of_a_trace_thin_bursts_out(case: Case, azure: Trace) -> None:
    """The dispersion of counts falls towards that of Poisson arrivals; tokens are those of the trace, as often as copied."""
    workload = case.table.workloads["assistant"]
    rate = 12 * azure.requests_per_s
    span = azure.input_tokens.size / azure.requests_per_s
    streams = [
        from_trace(workload, azure, rate, length, scaling, np.random.default_rng(1))
        for scaling, length in ((Scaling.COMPRESSED, span / 12), (Scaling.COPIES, span))
    ]

    compressed, copies = (dispersion(s.arrival_s, 2.0) for s in streams)
    assert copies < 0.7 * compressed
    assert streams[1].size == 12 * streams[0].size
    assert streams[1].input_tokens.sum() == 12 * azure.input_tokens.sum()
    for stream in streams:
        assert (stream.size - 1) / stream.arrival_s[-1] == pytest.approx(rate, rel=0.02)


def test_short_traces_are_repeated(case: Case, azure: Trace) -> None:
    once, thrice = (
        from_trace(
            case.table.workloads["assistant"],
            azure,
            azure.requests_per_s,
            times * azure.input_tokens.size / azure.requests_per_s,
            Scaling.COMPRESSED,
            np.random.default_rng(1),
        )
        for times in (1, 3)
    )

    assert once.size == azure.input_tokens.size
    assert thrice.size == 3 * once.size
    assert (np.diff(thrice.arrival_s) >= 0.0).all()
    assert thrice.input_tokens.tolist() == 3 * once.input_tokens.tolist()


def test_too_few_requests_tell_nothing(case: Case) -> None:
    """A day of one request a minute has no 95th percentile in its first ten minutes."""
    (pool, *_) = case.replay(replace(QUICK, duration_s=30.0), factor=0.01)

    assert pool.verdict == "inconclusive"
    assert {limit.replayed_s for w in pool.workloads for limit in w.limits if limit.metric != "itl_p95"} == {None}


def test_replays_without_end_are_refused(case: Case) -> None:
    with pytest.raises(DiagnosticError) as raised:
        case.replay(replace(QUICK, duration_s=1e9))
    assert [d.code for d in raised.value.diagnostics] == ["replay/too-long"]


def test_failures_after_the_end_are_refused(case: Case) -> None:
    with pytest.raises(DiagnosticError) as raised:
        case.replay_plan(replace(QUICK, duration_s=300.0, fail_at_s=280.0))
    assert [d.code for d in raised.value.diagnostics] == ["replay/fails-too-late"]


def dispersion(arrivals: np.ndarray, window: float) -> float:
    counts = np.bincount((arrivals / window).astype(int))[:-1]
    return float(counts.var() / counts.mean())


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.5, 1.0, 4.0]))
def test_drawn_arrivals_have_the_rate_and_the_burstiness_asked_for(case: Case, seed: int, cv2: float) -> None:
    workload = case.table.workloads["assistant"]
    traffic = workload.spec.traffic.model_copy(update={"arrival_cv2": cv2})
    asked = replace(workload, spec=workload.spec.model_copy(update={"traffic": traffic}))
    stream = synthetic(asked, 50.0, 200.0, 8000, generator(seed, 0, "assistant"))

    assert stream.size == pytest.approx(10_000, abs=6.0 * np.sqrt(10_000 * max(cv2, 0.01)))
    gaps = np.diff(stream.arrival_s)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(cv2, rel=0.25, abs=1e-6)
    assert (stream.input_tokens + stream.output_tokens).max() <= 8000
    cut = joint_truncation(traffic.input_tokens.lengths, traffic.output_tokens.lengths, 8000.0)
    assert stream.input_tokens.mean() == pytest.approx(cut.mean_input_tokens, rel=0.06)
    assert stream.output_tokens.mean() == pytest.approx(cut.mean_output_tokens, rel=0.06)
    assert (stream.hit_tokens < stream.input_tokens).all()
    assert stream.hit_tokens.max() == 200


def test_demand_by_the_hour_follows_its_hours(case: Case) -> None:
    profile = [0.25, 0.5, 1.0, 0.0] * 6
    stream = synthetic(case.table.workloads["batch"], 2.0, 86_400.0, 8000, generator(1, 0, "batch"), profile)
    counts = np.bincount((stream.arrival_s / 3600.0).astype(int), minlength=24)

    for count, share in zip(counts, profile, strict=True):
        assert abs(count - 7200 * share) <= 5.0 * np.sqrt(7200 * share) + 2


def test_a_day_is_as_long_as_it_is(case: Case) -> None:
    for pool in case.replay(replace(QUICK, by_hour=True, replications=1), factor=0.005):
        assert pool.duration_s == 86_400.0
        for workload in pool.workloads:
            assert len(workload.timeline) == 24
            assert sum(s.requests_per_s for s in workload.timeline) / 24 == pytest.approx(
                workload.requests_per_s, rel=0.1
            )


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=5))
def test_requests_are_shared_out_and_none_is_lost(shares: list[float]) -> None:
    count = 5000
    columns = [np.arange(count) for _ in range(4)]
    parts = shares_of(Stream("w", np.arange(count, dtype=float), *columns), shares, np.random.default_rng(0))

    assert sorted(np.concatenate([p.arrival_s for p in parts])) == list(range(count))
    for part, share in zip(parts, shares, strict=True):
        expected = count * share / sum(shares)
        assert abs(part.size - expected) <= 5.0 * np.sqrt(expected) + 1


def test_spares_carry_the_demand_when_a_replica_fails(case: Case) -> None:
    found = case.replay_plan(replace(QUICK, fail_at_s=60.0, duration_s=400.0))

    assert len(found.loses_replica) == 1
    assert found.verdict in ("pass", "inconclusive")
    for pool in found.pools:
        for workload in pool.workloads:
            assert [p.name for p in workload.phases] == ["before", "the minute after", "later"]
            late = {limit.metric: limit for limit in workload.phases[-1].limits}
            assert [limit for limit in workload.limits if limit.metric in late] == list(late.values())


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda trace: replace(trace, arrival_s=None), "trace/no-arrivals"),
        (lambda trace: replace(trace, input_tokens=trace.input_tokens * 10), "trace/too-long"),
        (lambda trace: replace(trace, input_tokens=trace.input_tokens[:99]), "trace/too-short"),
    ],
    ids=["no arrivals", "too long", "too short"],
)
def test_traces_that_cannot_be_replayed(change: Callable[[Trace], Trace], code: str, case: Case, azure: Trace) -> None:
    with pytest.raises(DiagnosticError) as raised:
        check_traces(Settings(traces={"assistant": change(azure)}), case.table)

    assert [d.code for d in raised.value.diagnostics] == [code]


def test_long_requests_are_refused_and_counted(case: Case, azure: Trace) -> None:
    longer = replace(azure, input_tokens=azure.input_tokens * 3)
    once = azure.input_tokens.size / 33.0
    asked = replace(QUICK, traces={"assistant": longer}, drop_long=True, replications=1, duration_s=once)
    check_traces(asked, case.table)
    long = int(np.count_nonzero(longer.input_tokens + longer.output_tokens > 8000))

    assert long > 100
    assert sum(w.refused for p in case.replay(asked) for w in p.workloads) == long


def test_the_only_replica_of_a_model_cannot_fail(catalog: Catalog) -> None:
    alone = Case(SPEC.replace("30 req/s", "1 req/s").replace("spare_replicas: 1", "spare_replicas: 0"), catalog)
    assert [p.replicas for p in alone.plan.pools] == [1]
    with pytest.raises(DiagnosticError) as raised:
        check_failure(alone.plan, Settings(fail_at_s=60.0))

    assert [d.code for d in raised.value.diagnostics] == ["plan/no-replica-left"]
