"""What tests of several packages share: the shipped catalog, and specs that are planned once."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from planned import Planned, PlanOnce, plan_text

from planner.catalog import Catalog

# The same examples on every machine, however slow it is.
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the tests of a file to one worker, so that what they share is made once."""
    from xdist.scheduler import LoadFileScheduling

    if config.getoption("dist") != "load":
        return None
    config.option.loadscopereorder = False  # which files take long has little to do with how many tests they hold
    return LoadFileScheduling(config, log)


def pytest_collection_finish() -> None:
    """Keep the thousands of collected tests out of the garbage collector's way."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The catalog of this repository, read once."""
    return Catalog.open()


@pytest.fixture(scope="session")
def plan_once(catalog: Catalog) -> PlanOnce:
    """Plan a spec given as text; the same text is planned only once in a session."""
    done: dict[str, Planned] = {}

    def plan(text: str) -> Planned:
        if text not in done:
            done[text] = plan_text(text, catalog)
        return done[text]

    return plan
