"""Ask a reviewer about every pool of a plan, and price the difference."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Iterator, Mapping

from planner.candidates.knowledge import Knowledge
from planner.candidates.models import resolve_models
from planner.candidates.traffic import resolve_workloads
from planner.candidates.types import ResolvedModel, ResolvedWorkload
from planner.catalog import Catalog
from planner.plan.schema import Plan, Pool
from planner.second_opinion.questions import our_figures, question_of
from planner.second_opinion.types import Opinion, Question, Reply, Review, Reviewer, Uncovered
from planner.spec import FleetSpec

ROUNDING = 1e-9
MOST_CHARACTERS = 240


def review(plan: Plan, spec: FleetSpec, catalog: Catalog, reviewer: Reviewer) -> Review:
    """Return the opinions of a reviewer on the pools of a plan of `spec`. Never raises for what the reviewer does."""
    knowledge = Knowledge.of(catalog, spec.planning.confidence)
    models = resolve_models(spec, catalog)
    workloads = resolve_workloads(spec, models)
    found = tuple(_opinion(pool, models[pool.model], workloads, catalog, knowledge, reviewer) for pool in plan.pools)
    return Review(reviewer.name, found)


def needed_replicas(replicas: int, utilization: float, ratio: float) -> int:
    """Return how many replicas carry the load of a pool when each has `ratio` times its planned capacity.

    The load is counted in replicas and rounded up; replicas beyond it (spares, rounding) are kept, as many as before.
    """
    load = replicas * utilization
    kept = replicas - math.ceil(load - ROUNDING)
    return max(1, math.ceil(load / ratio - ROUNDING)) + kept


def _opinion(
    pool: Pool,
    model: ResolvedModel,
    workloads: Mapping[str, ResolvedWorkload],
    catalog: Catalog,
    knowledge: Knowledge,
    reviewer: Reviewer,
) -> Opinion:
    price = pool.usd_per_hour / pool.replicas
    if not (pool.traffic or pool.workloads):
        return Opinion(pool.name, pool.replicas, price, None, reason="the plan does not say what traffic it has")
    question = question_of(pool, model, workloads)
    if question is None:
        return Opinion(pool.name, pool.replicas, price, None, reason="it generates one token per request")
    best = our_figures(question, model, catalog, knowledge)
    planned = our_figures(question, model, catalog, knowledge, pool.band.factor, pool.band.ttft_factor)
    reply = _asked(reviewer, question)
    if isinstance(reply, str):
        return Opinion(pool.name, pool.replicas, price, question, best, planned, reason=reply)
    ratio = reply.figures.requests_per_s / planned.requests_per_s
    needed = needed_replicas(pool.replicas, pool.utilization, ratio)
    return Opinion(pool.name, pool.replicas, price, question, best, planned, reply.figures, reply.basis, needed=needed)


def _asked(reviewer: Reviewer, question: Question) -> Reply | str:
    """Return the reply, or the reason for none."""
    try:
        with _silence():
            reply = reviewer.answer(question)
    except Uncovered as error:
        return _one_line(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic in compiled code is no Exception
        return _one_line(f"{type(error).__name__}: {error}")
    figures = (reply.figures.tpot_s, reply.figures.requests_per_s, reply.figures.ttft_alone_s)
    if not all(math.isfinite(figure) and figure > 0.0 for figure in figures):
        return "its figures are no positive numbers"
    return reply


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what a library logs, warns or prints away from the answer."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 3]}..."
