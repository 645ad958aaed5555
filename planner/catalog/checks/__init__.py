"""`catalog check`: read every file of a catalog and test what one file says against the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date

from planner.catalog.checks import engines, gpus, models, names, offers, quality
from planner.catalog.checks.findings import Findings, guarded
from planner.catalog.store import Catalog
from planner.diagnostics import Diagnostic, sort_key


def check_catalog(catalog: Catalog, as_of: date | None = None) -> list[Diagnostic]:
    """Return everything wrong or doubtful in a catalog, sorted by place.

    Errors are files that cannot be read, references that lead nowhere and counts that do not agree. Warnings are
    doubts that the catalog itself states and prices that are old at `as_of` (default: the newest price date).
    """
    clock = as_of or catalog.newest_price_date()
    return sorted(dict.fromkeys(_all(catalog, clock)), key=sort_key)


def _each(
    names: Callable[[], Iterable[str]], check: Callable[..., Findings], catalog: Catalog, *args: date
) -> Findings:
    """Yield the findings of a check of every entry of a folder."""
    for name in names():
        yield from guarded(check, catalog, name, *args)


def _all(catalog: Catalog, clock: date) -> Iterator[Diagnostic]:
    yield from catalog.misnamed()
    yield from guarded(_each, catalog.gpu_names, gpus.findings, catalog)
    yield from guarded(_each, catalog.model_names, models.findings, catalog)
    yield from guarded(_each, catalog.providers, offers.findings, catalog, clock)
    yield from guarded(_each, catalog.engine_names, engines.findings, catalog)
    yield from guarded(_each, catalog.calibration_names, engines.calibration_findings, catalog)
    yield from guarded(offers.newest_price_findings, catalog)
    yield from guarded(offers.ratio_findings, catalog)
    yield from guarded(names.case_findings, catalog)
    yield from guarded(names.alias_findings, catalog)
    yield from guarded(names.label_findings, catalog)
    yield from guarded(quality.findings, catalog, "weights")
    yield from guarded(quality.findings, catalog, "kv")
