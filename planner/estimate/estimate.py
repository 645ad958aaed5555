"""Put the answer together: search, memory, speed, and what to say beside the numbers."""

from __future__ import annotations

from dataclasses import replace

from planner.catalog import Catalog
from planner.estimate.answer import Estimate, Found, Load, LoadKind, Search
from planner.estimate.deployment import Deployment
from planner.estimate.find import max_concurrency, max_model_len, min_tensor
from planner.estimate.memory import Fit, fit, longest_context
from planner.estimate.notes import assumptions, notes, warnings
from planner.estimate.remedies import remedies
from planner.estimate.words import brief


def estimate(deployment: Deployment, load: Load, catalog: Catalog, search: Search | None = None) -> Estimate:
    """Return everything known about a deployment under a load, or about the one that a search ends in.

    Raises `UnknownArchitecture` for a model whose memory cannot be computed, `ValueError` for a calibration that is
    incomplete.
    """
    found, deployment, load = _searched(deployment, load, search)
    held = fit(deployment)
    speed = None
    if held.fits:
        from planner.estimate.speed import speed_of

        speed = speed_of(held, load, catalog)
        if search is Search.MAX_RATE:
            found = _rate_found(speed.requests_per_s, load) or _no_rate(held, load, catalog)
            speed = speed if found.value else None
    elif search is Search.MAX_RATE:
        found = Found(Search.MAX_RATE, None, "no rate: the deployment does not fit")
    return Estimate(
        fit=held,
        longest_context=longest_context(deployment),
        remedies=[] if held.fits else remedies(deployment, catalog),
        speed=speed,
        warnings=warnings(held, catalog, speed.sureness.own if speed else None),
        notes=[*notes(held, catalog), *(speed.notes if speed else ())],
        assumptions=assumptions(deployment),
        found=found,
    )


def _searched(deployment: Deployment, load: Load, search: Search | None) -> tuple[Found | None, Deployment, Load]:
    match search:
        case Search.MAX_CONCURRENCY:
            found, deployment = max_concurrency(fit(deployment))
            return found, deployment, replace(load, kind=LoadKind.CONCURRENCY, value=found.value or 1.0)
        case Search.MAX_MODEL_LEN:
            return *max_model_len(deployment), load
        case Search.MIN_TP:
            return *min_tensor(deployment), load
        case Search.MAX_RATE:
            return None, deployment, replace(load, kind=LoadKind.MAX, value=0.0)
        case None:
            return None, deployment, load


def _rate_found(rate: float | None, load: Load) -> Found | None:
    if not rate:
        return None
    within = f" within {_limits(load)}" if load.limits_s else ""
    return Found(Search.MAX_RATE, rate, f"{rate:.3g} req/s on one replica{within}")


def _no_rate(held: Fit, load: Load, catalog: Catalog) -> Found:
    """Say what a lone request takes where even that misses the limits, and what this consists of."""
    from planner.estimate.loaded import LEAST_RATE
    from planner.estimate.speed import speed_of

    idle = speed_of(held, replace(load, kind=LoadKind.RATE, value=LEAST_RATE), catalog)
    if idle.times is None:
        sentence = "no rate: the KV cache holds no request of these lengths under load"
        return Found(Search.MAX_RATE, None, sentence, limited_by="capacity")
    took = {key: float(getattr(idle.times, f"{key}_s")) for key in sorted(load.limits_s)}
    missed = [key for key, time_s in took.items() if time_s > load.limits_s[key]] or list(took)
    alone = " and ".join(f"{key.partition('_')[0].upper()} is {brief(took[key])}" for key in missed)
    sentence = f"no rate holds {_limits(load)}: even alone {alone}"
    return Found(Search.MAX_RATE, None, sentence, alone=idle.times, limited_by=idle.limited_by)


def _limits(load: Load) -> str:
    from planner.estimate.loaded import limit_name

    return " and ".join(f"{limit_name(key)} of {brief(limit_s)}" for key, limit_s in sorted(load.limits_s.items()))
