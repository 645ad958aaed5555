"""Start-up logs of the suite, and rows made by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from planner.catalog import Catalog
from planner.validation.memory import MemoryValidation, validate_memory
from planner.validation.table import Row, Table, read_table

LOGS = Path(__file__).parents[1] / "data" / "memory" / "start_up_logs.csv"
PLAIN = {
    "case_id": "H1",
    "source": "by hand",
    "engine": "vllm",
    "engine_version": "0.19.0",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "weight_dtype": "bf16",
    "kv_dtype": "bf16",
    "gpu": "H100-80GB",
    "n_gpus": "1",
    "tp": "1",
    "pp": "1",
    "max_model_len": "8192",
    "gpu_memory_utilization": "0.95",
    "max_num_batched_tokens": "8192",
    "total_gpu_gib": "79.19",
    "weights_gib_per_gpu": "14.99",
    "kv_gib_per_gpu": "58.11",
    "kv_tokens": "476000",
    "max_concurrency": "58.11",
    "outcome": "ok",
}


def row(**changes: str) -> Row:
    return {**PLAIN, **changes}


@cache
def catalog() -> Catalog:
    return Catalog.open()


@cache
def logs() -> Table:
    return read_table(LOGS.read_bytes(), str(LOGS))


def validated(*rows: Row) -> MemoryValidation:
    return validate_memory(rows, catalog())
