"""A reviewer is asked about every pool, whatever it does is survived, and the difference is priced."""

from __future__ import annotations

import logging
import math
import sys
import warnings
from dataclasses import replace

import pytest
from opinion_cases import Told, reply
from planned import SMALL, Planned, PlanOnce

from planner.catalog import Catalog
from planner.report.second_opinion import render
from planner.second_opinion import Figures, Question, Reply, Review, Uncovered, review
from planner.second_opinion.review import needed_replicas


@pytest.fixture
def small(plan_once: PlanOnce) -> Planned:
    """The plan of a small fleet."""
    return plan_once(SMALL)


def reviewed(small: Planned, catalog: Catalog, reviewer: Told) -> Review:
    """Return the review of the small fleet."""
    return review(small.plan, small.spec, catalog, reviewer)


@pytest.mark.parametrize(
    ("replicas", "utilization", "ratio", "needed"),
    [
        (5, 0.79, 1.0, 5),
        (5, 0.79, 1.02, 5),
        (5, 0.79, 0.98, 6),
        (5, 0.79, 0.5, 9),
        (5, 0.79, 2.0, 3),
        (2, 0.5, 1.0, 2),
        (2, 0.5, 0.9, 3),
        (1, 0.2, 100.0, 1),
        (4, 1.0, 1.0, 4),
        (4, 0.0, 1.0, 5),
    ],
)
def test_load_is_scaled_and_what_is_beyond_it_is_kept(
    replicas: int, utilization: float, ratio: float, needed: int
) -> None:
    assert needed_replicas(replicas, utilization, ratio) == needed


def test_equal_capacity_is_no_regret() -> None:
    for replicas in range(1, 30):
        for percent in range(1, 101):
            assert needed_replicas(replicas, percent / 100, 1.0) == replicas


def test_the_question_is_the_pool_at_its_mean_batch(small: Planned, catalog: Catalog) -> None:
    asked: list[Question] = []

    def listen(question: Question) -> Reply:
        asked.append(question)
        return reply()

    found = reviewed(small, catalog, Told(listen))
    pool, q = small.plan.pools[0], asked[0]

    assert [o.pool for o in found.opinions] == [p.name for p in small.plan.pools]
    assert (q.gpu, q.weights, q.kv_cache, q.tensor) == (pool.gpu, pool.weights, pool.kv_cache, pool.tensor_parallel)
    assert (q.in_flight, q.input_tokens, q.cached_tokens) == (max(1, round(pool.mean_batch)), 800, 0)
    assert q.output_tokens == pytest.approx(200, abs=2)


def test_our_figures_agree_with_the_plan(small: Planned, catalog: Catalog) -> None:
    """Mean lengths against whole distributions: the same speed within a few percent, and the plan's margin between."""
    found = reviewed(small, catalog, Told(lambda _: reply()))
    for pool, opinion in zip(small.plan.pools, found.opinions, strict=True):
        assert opinion.best is not None
        assert opinion.planned is not None
        assert opinion.planned.tpot_s == pytest.approx(pool.band.factor * opinion.best.tpot_s)
        assert opinion.planned.tpot_s == pytest.approx(pool.predicted.tpot_p50_s, rel=0.15)
        assert opinion.planned.ttft_alone_s < pool.predicted.ttft_p95_s


def test_the_same_figures_are_no_regret(small: Planned, catalog: Catalog) -> None:
    first = reviewed(small, catalog, Told(lambda _: reply()))
    planned = {o.pool: o.planned for o in first.opinions}
    same = reviewed(small, catalog, Told(lambda q: Reply(planned[q.pool] or Figures(1, 1, 1), "the plan")))

    assert (same.extra_usd_per_hour, same.saved_usd_per_hour) == (0.0, 0.0)
    assert "no regret" in render(same)


@pytest.mark.parametrize(("ratio", "is_extra"), [(0.5, True), (4.0, False)])
def test_other_capacity_is_priced_by_the_replica(
    ratio: float, is_extra: bool, small: Planned, catalog: Catalog
) -> None:
    planned = {o.pool: o.planned for o in reviewed(small, catalog, Told(lambda _: reply())).opinions}

    def scaled(question: Question) -> Reply:
        figures = planned[question.pool]
        assert figures is not None
        return Reply(replace(figures, requests_per_s=ratio * figures.requests_per_s), "scaled")

    found = reviewed(small, catalog, Told(scaled))
    missing = sum((o.needed - o.replicas) * o.usd_per_replica_hour for o in found.opinions)

    assert found.extra_usd_per_hour - found.saved_usd_per_hour == pytest.approx(missing)
    assert (missing > 0.0) is is_extra
    assert ("more per hour" if is_extra else "less per hour") in render(found)


class Panic(BaseException):
    """What compiled code may raise."""


@pytest.mark.parametrize(
    "error",
    [Uncovered("no tables"), ValueError("two\nlines"), KeyError("x"), SystemExit(3), Panic("index out of range")],
    ids=lambda error: type(error).__name__,
)
def test_whatever_it_raises_is_a_line(error: BaseException, small: Planned, catalog: Catalog) -> None:
    def fail(_: Question) -> Reply:
        raise error

    found = reviewed(small, catalog, Told(fail))
    text = render(found)

    assert not any(o.covered for o in found.opinions)
    assert found.extra_usd_per_hour == 0.0
    assert "chat: not covered: " in text
    assert "Regret" not in text
    assert "Traceback" not in text


def test_an_interrupt_is_not_a_reason(small: Planned, catalog: Catalog) -> None:
    def stop(_: Question) -> Reply:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reviewed(small, catalog, Told(stop))


@pytest.mark.parametrize("figure", [0.0, -1.0, math.nan, math.inf])
def test_figures_that_mean_nothing_are_not_shown(figure: float, small: Planned, catalog: Catalog) -> None:
    found = reviewed(small, catalog, Told(lambda _: reply(requests_per_s=figure)))

    assert not any(o.covered for o in found.opinions)


def test_what_it_prints_and_logs_is_silenced(
    small: Planned, catalog: Catalog, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def talk(_: Question) -> Reply:
        print("hello")
        print("hello", file=sys.stderr)
        logging.getLogger("theirs").error("hello")
        warnings.warn("hello", stacklevel=1)
        return reply()

    reviewed(small, catalog, Told(talk))

    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert logging.root.manager.disable == 0
