"""Frontiers: every step of a staircase is found and proven, with few plans; trades that there are not are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swept import base, job

from planner.report.frontier import COLUMNS, blocks, csv_text, picture
from planner.report.table import print_blocks
from planner.sweep.frontier import Found, Frontier, steps_of
from planner.sweep.row import Row
from planner.sweep.run import trade_called
from planner.sweep.trade import PRECISION, RangeError, Today, Trade, TradeError, trade_of

TODAY = Today(gpus=3, power_w=600.0)


def shown(found: Found, fleet: str = "f") -> Frontier:
    return Frontier(
        fleet=fleet,
        trade="t",
        key="k",
        unit="s",
        tightest=0.01,
        loosest=1.0,
        planned=found.planned,
        complete=found.complete,
        steps=found.steps,
    )


def trade(kind: str = "time", tightest: float = 0.01, loosest: float = 1.0) -> Trade:
    return Trade("cost against something", "some.key", kind, tightest, loosest, str)  # type: ignore[arg-type]


class Stairs:
    """A spec whose cost doubles at each of some limits, and which no fleet meets below the tightest of them."""

    def __init__(self, limits: Sequence[float], gap: float = 0.0) -> None:
        self.limits, self.gap = sorted(limits), gap
        self.asked: list[float] = []

    def cost(self, limit: float) -> float | None:
        above = sum(1 for each in self.limits if each <= limit)
        return None if above == 0 else 100.0 * 2.0 ** (len(self.limits) - above)

    def __call__(self, limits: Sequence[float]) -> Mapping[float, Row]:
        self.asked += limits
        return {limit: self._row(self.cost(limit)) for limit in limits}

    def _row(self, cost: float | None) -> Row:
        if cost is None:
            return Row(scenario=0, values={}, status="infeasible")
        bound = cost * (1.0 - self.gap)
        return Row(
            scenario=0, values={}, status="solved", usd_per_month=cost, bound_usd_per_month=bound, gap=self.gap, gpus=1
        )


@given(st.lists(st.floats(0.011, 0.99), min_size=1, max_size=4))
def test_every_step_that_can_be_told_apart_is_found(limits: list[float]) -> None:
    stairs = Stairs(limits)
    steps = steps_of(trade(), stairs).steps

    assert len(stairs.asked) == len(set(stairs.asked)) < 100
    for step in steps:
        assert step.row.usd_per_month == stairs.cost(step.limit)
        if step.dearer_at is not None:
            assert stairs.cost(step.dearer_at) != step.row.usd_per_month
            assert step.limit / step.dearer_at <= 1.0 + PRECISION + 1e-9
            assert step.next == ("no-fleet" if stairs.cost(step.dearer_at) is None else "dearer")
    costs = [step.row.usd_per_month or 0.0 for step in steps]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 100.0


def test_differences_within_the_gap_are_no_steps() -> None:
    steps = steps_of(trade(), Stairs([0.001, 0.1], gap=0.6)).steps
    assert [(step.limit, step.next) for step in steps] == [(0.01, "end")]


@pytest.mark.parametrize("exponent", [0.05, 0.2])
def test_costs_that_rise_in_steps_below_the_gap_rise_in_the_answer_too(exponent: float) -> None:
    class Slope(Stairs):
        def cost(self, limit: float) -> float | None:
            return 100.0 * limit**-exponent

    slope = Slope([], gap=0.005)
    found = steps_of(trade(), slope)
    costs = [step.row.usd_per_month or 0.0 for step in found.steps]

    assert found.complete
    assert costs == sorted(costs, reverse=True)
    assert (found.steps[0].limit, found.steps[0].next) == (0.01, "end")
    assert costs[-1] <= 101.0
    assert all(dear / cheap < 1.02 for dear, cheap in pairwise(costs))
    for step in found.steps[1:]:
        assert step.dearer_at is not None
        assert (slope.cost(step.dearer_at) or 0.0) * 0.995 > (step.row.usd_per_month or 0.0)


def test_what_a_solver_leaves_open_is_no_step() -> None:
    class Uneven(Stairs):
        """One cost, of which plans miss the best by another part of the gap each."""

        def cost(self, limit: float) -> float | None:
            return 100.0 + 0.4 * (hash(limit) % 7) / 7

    found = steps_of(trade(), Uneven([], gap=0.005))
    assert [(step.limit, step.next) for step in found.steps] == [(0.01, "end")]


@given(
    st.lists(
        st.tuples(st.sampled_from(["solved", "infeasible", "unproven"]), st.floats(1, 9), st.floats(0, 9)), min_size=9
    )
)
def test_whatever_is_found_costs_fall_from_step_to_step(answers: list[tuple[str, float, float]]) -> None:
    rows = iter(answers)

    def ask(limits: Sequence[float]) -> Mapping[float, Row]:
        return {limit: row(*next(rows, ("unproven", 0.0, 0.0))) for limit in limits}

    def row(status: str, cost: float, bound: float) -> Row:
        known = {"usd_per_month": cost, "bound_usd_per_month": min(bound, cost)} if status == "solved" else {}
        return Row.model_validate({"scenario": 0, "values": {}, "status": status, **known})

    steps = steps_of(trade(), ask).steps
    costs = [step.row.usd_per_month or 0.0 for step in steps]

    assert costs == sorted(set(costs), reverse=True)
    assert [step.limit for step in steps] == sorted({step.limit for step in steps})
    assert all(step.dearer_at is None or step.dearer_at < step.limit for step in steps)
    assert bool(steps) == any(status == "solved" for status, *_ in answers[:9])


def test_limits_that_nobody_solved_are_neither_fleets_nor_proofs() -> None:
    class Unsolved(Stairs):
        def _row(self, cost: float | None) -> Row:
            return Row(scenario=0, values={}, status="unproven") if cost is None else super()._row(cost)

    (step,) = steps_of(trade(), Unsolved([0.1])).steps
    assert (step.dearer_at, step.next) == (None, "end")
    assert 0.1 <= step.limit < 0.2


def test_too_many_steps_are_told() -> None:
    class Slope(Stairs):
        def cost(self, limit: float) -> float | None:
            return 100.0 / limit

    found = steps_of(trade("time", 1e-6, 1.0), Slope([]))
    assert not found.complete
    assert "--between" in print_blocks(blocks(shown(found)))


def test_whole_numbers_are_found_exactly() -> None:
    steps = steps_of(trade("count", 1.0, 200.0), Stairs([37.0, 101.0])).steps
    assert [(step.limit, step.dearer_at, step.next) for step in steps] == [
        (37.0, 36.0, "no-fleet"),
        (101.0, 100.0, "dearer"),
    ]


def test_a_limit_may_tighten_upwards() -> None:
    class Downwards(Stairs):
        def cost(self, limit: float) -> float | None:
            return 200.0 if limit > 0.9 else 100.0

    steps = steps_of(trade("share", 0.99, 0.5), Downwards([])).steps
    assert [step.row.usd_per_month for step in steps] == [200.0, 100.0]
    assert 0.89 < steps[1].limit <= 0.9 < (steps[1].dearer_at or 0.0) < 0.91


@pytest.mark.parametrize(
    ("text", "between", "message"),
    [
        ("cost", None, "is no trade"),
        ("power:gpus", None, "is no trade"),
        ("cost:tpot_p59@assistant", None, "did you mean cost:tpot_p95@assistant?"),
        ("cost:tpot_p95@asistant", None, "did you mean `assistant`?"),
        ("cost:gpu", None, "did you mean cost:gpus?"),
        ("cost:gpus", "1 s..2 s", "measures a time; this field is a count"),
        ("cost:tpot_p95", "40 ms", "is no range"),
        ("cost:tpot_p95", "40 ms..40 ms", "is no range"),
        ("cost:gpus", "1.5..3", "whole number"),
    ],
)
def test_a_trade_that_there_is_not_is_refused(text: str, between: str | None, message: str) -> None:
    with pytest.raises((TradeError, RangeError)) as caught:
        trade_of(text, base(), between, lambda: TODAY)
    assert message in str(caught.value)


def unasked() -> Today:
    raise AssertionError("the fleet of today is not needed")


def test_ranges_start_from_the_fleet_of_today() -> None:
    power = trade_of("cost:power", base(), None, lambda: TODAY)
    gpus = trade_of("cost:gpus", base(), None, lambda: TODAY)

    assert (power.tightest, power.loosest, power.text_of(150.0)) == (150.0, 2400.0, "150 W")
    assert (gpus.tightest, gpus.loosest) == (1.0, 12.0)
    with pytest.raises(TradeError, match="no fleet meets the spec as it is"):
        trade_of("cost:power", base(), None, lambda: None)


def test_limits_are_written_as_the_spec_has_them() -> None:
    latency = trade_of("cost:tpot_p95", base(), None, unasked)
    gpus = trade_of("cost:gpus", base(), "2..9", unasked)
    confidence = trade_of("cost:confidence", base(), "80 %..95 %", unasked)

    assert (latency.key, latency.text_of(0.05)) == ("workloads.assistant.slo.tpot_p95", "50 ms")
    assert (latency.tightest, latency.loosest) == (0.0125, 0.2)
    assert (gpus.key, json.loads(gpus.text_of(4.0))) == ("supply.limits.rules", [{"match": {}, "gpus": 4}])
    assert (gpus.tightest, gpus.loosest) == (2.0, 9.0)
    assert (confidence.tightest, confidence.loosest) == (0.95, 0.8)


def test_a_trade_without_any_fleet_is_told() -> None:
    found = shown(steps_of(trade(), Stairs([2.0])))

    assert (found.planned, found.steps) == (9, ())
    assert "No fleet meets the spec at any of these limits." in print_blocks(blocks(found))
    assert csv_text(found) == f"{','.join(COLUMNS)}\n"
    assert picture(found, "svg")


def test_pictures_and_rows_have_every_step() -> None:
    found = shown(steps_of(trade(), Stairs([0.1, 0.4])), "a<b>&机")

    assert len(csv_text(found).splitlines()) == 3
    assert picture(found, "svg") == picture(found, "svg")
    assert picture(found, "png").startswith(b"\x89PNG")
    assert "steps are found to 1 %" in print_blocks(blocks(found))
    page = picture(found, "html").decode()
    assert "a&lt;b&gt;&amp;" in page
    assert "<b>" not in page


def test_months_ahead_have_no_frontier() -> None:
    grows = replace(job(), text=f"{job().text}growth: {{rate: 8 %/month, horizon: 6 months}}\n")
    with pytest.raises(TradeError, match="remove `growth`"):
        trade_called(grows, "cost:gpus", None)
