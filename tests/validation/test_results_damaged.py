"""Whatever is in a result file is refused in words or read: nothing makes a traceback."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from result_inputs import (
    USABLE,
    parsed,
    read,
    text_of,
    usable,
)

from planner.diagnostics import DiagnosticError
from planner.validation.cells import REFUSED
from planner.validation.result_fields import (
    COLUMNS,
)
from planner.validation.result_run import LEAST, MOST

KEYS = st.sampled_from(sorted(set(re.findall(r'"([\w.-]+)":', " ".join(text_of(name) for name in USABLE)))))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**400, "inf", "concurrency", "poisson", "ms", "tokens/sec", "true", "2025-11-14"])
    | st.text(max_size=8)
)
JSON = st.recursive(
    SCALARS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inside, max_size=6),
    max_leaves=20,
)


def paths_of(data: Any) -> list[tuple[str | int, ...]]:
    """List the paths of all values inside `data`."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path for key, value in inside for path in [(key,), *((key, *rest) for rest in paths_of(value))]]


@cache
def places(name: str) -> list[tuple[str | int, ...]]:
    return paths_of(parsed(name))


def survives(data: Any) -> None:
    """Check that `data` is refused in words or yields text whose values are numbers."""
    try:
        rows = read(data)
    except DiagnosticError:
        return
    assert rows
    for row in rows:
        assert tuple(row) == (*COLUMNS, *([REFUSED] if REFUSED in row else []))
        assert all(isinstance(cell, str) and cell.isprintable() for cell in row.values())
    for row in usable(rows):
        assert LEAST <= float(row["value"]) <= MOST
        assert LEAST <= float(row["isl"]) <= MOST


@given(JSON)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_no_json_makes_a_traceback(data: Any) -> None:
    survives(data)


@given(st.sampled_from([*USABLE, "vllm_throughput.json"]), st.data())
@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
def test_no_damaged_result_makes_a_traceback(name: str, data: st.DataObject) -> None:
    damaged = parsed(name)
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places(name)))
        inside = damaged
        try:
            for key in above:
                inside = inside[key]
            inside[last] = data.draw(JSON)
        except (KeyError, IndexError, TypeError):
            continue
    survives(damaged)
