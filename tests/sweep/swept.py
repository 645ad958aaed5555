"""A small spec to sweep, and the means to."""

from __future__ import annotations

from planner.candidates.references import open_catalog
from planner.spec import load_spec
from planner.sweep.base import Base
from planner.sweep.check import read_settings
from planner.sweep.scenario import Definition, Mode, Scenario
from planner.sweep.work import Job

TEXT = """\
version: 1
fleet: small
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic: {rate: 2 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s, tpot_p95: 50 ms}
supply:
  offers: [{name: cloud, provider: aws, region: us-east-1, gpus: [L40S]}]
"""
OFFER = "cloud/us-east-1/g6e.xlarge/on-demand"
PRICE = f"price.{OFFER}"
RATE = "workloads.assistant.traffic.rate"


def base() -> Base:
    """Return the spec with the shipped catalog."""
    loaded = load_spec(TEXT, "small.yaml")
    return Base(loaded, open_catalog(loaded))


def job() -> Job:
    """Return what workers are told about the spec."""
    return Job(TEXT, "small.yaml", None, None, base().catalog.digest())


def defined(*texts: str, mode: Mode = Mode.GRID, samples: int = 0, seed: int = 1) -> Definition:
    """Return a sweep of the spec."""
    return Definition(read_settings(texts, base()), mode, samples, seed)


def scenario(number: int = 1, **values: str) -> Scenario:
    """Return a scenario with values of a rate and a price."""
    keys = {"rate": RATE, "price": PRICE}
    return Scenario(number, tuple((keys[name], value) for name, value in values.items()))
