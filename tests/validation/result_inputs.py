"""Result files of the suite, changed and read, and what of them cannot be scored."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from planner.validation.cells import REFUSED
from planner.validation.result_fields import (
    COLUMNS,
)
from planner.validation.results import rows_of
from planner.validation.stated import Stated

FILES = Path(__file__).parents[1] / "data" / "results"
STATED = {"gpu": "H100 SXM 80GB", "n_gpus": "1", "tp": "1", "engine": "vLLM 0.11.0", "source": "mine"}
USABLE = sorted(path.name for path in FILES.glob("*.json") if path.name != "vllm_throughput.json")
LATENCIES = {f"{kind}_ms_{statistic}" for kind in ("ttft", "tpot") for statistic in ("mean", "p50", "p99")}


@cache
def text_of(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def parsed(name: str, **changes: Any) -> Any:
    data = json.loads(text_of(name))
    return data | changes if isinstance(data, dict) else data


def read(data: Any, **stated: str) -> list[dict[str, str]]:
    return [Stated(STATED | stated).fill_result(row) for row in rows_of(data, "result.json")]


def cells(rows: list[dict[str, str]], *columns: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(row[column] for column in columns) for row in rows))


def values(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["metric"]: row["value"] for row in rows}


def usable(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in rows if REFUSED not in row]


def refused(data: Any) -> list[str]:
    """The reasons of all rows that a file yields and that cannot be scored."""
    return [row[REFUSED] for row in read(data) if REFUSED in row]


def refusal(data: Any) -> str:
    """The one reason of a file of which nothing can be scored."""
    (row,) = read(data)
    assert not any(row[column] for column in COLUMNS if column not in STATED)
    return row[REFUSED]
