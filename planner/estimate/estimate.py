"""Put the answer together: search, memory, speed, and what to say beside the numbers."""

from __future__ import annotations

from dataclasses import replace

from planner.catalog import Catalog
from planner.estimate.answer import Estimate, Found, Load, LoadKind, Search
from planner.estimate.deployment import Deployment
from planner.estimate.find import max_concurrency, max_model_len, min_tensor
from planner.estimate.memory import fit, longest_context
from planner.estimate.notes import assumptions, notes, warnings
from planner.estimate.remedies import remedies


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
            found = _rate_found(speed.requests_per_s, load)
    elif search is Search.MAX_RATE:
        found = Found(Search.MAX_RATE, None, "no rate: the deployment does not fit")
    return Estimate(
        fit=held,
        longest_context=longest_context(deployment),
        remedies=[] if held.fits else remedies(deployment, catalog),
        speed=speed,
        warnings=warnings(held, catalog),
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


def _rate_found(rate: float | None, load: Load) -> Found:
    within = " and ".join(
        f"{key.replace('_', ' ').upper().replace(' P', ' p')} of {limit:g} s"
        for key, limit in sorted(load.limits_s.items())
    )
    if not rate:
        return Found(Search.MAX_RATE, None, f"no rate holds {within or 'a single request'}")
    return Found(Search.MAX_RATE, rate, f"{rate:.3g} req/s on one replica" + (f" within {within}" if within else ""))
