"""`--show-config`: complete, with the right sources, and itself a spec that means the same."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from planner.catalog import Catalog
from planner.pipeline import Options
from planner.report.config import render_config
from planner.spec import FleetSpec, LoadedSpec, load_spec

ROOT = Path(__file__).parents[2]
SPECS = sorted(path for path in (ROOT / "specs").rglob("*.yaml") if path.parent.name != "scenarios")

FULL = """\
version: 1
requires_planner: ">=0.1, <9"
fleet: "all: of it"
x-notes: {anything: goes}
defaults: {min_quality: 98 %, engine: {version: "0.20"}}
models:
  "chat.v2":
    use: llama-3.3-70b
    quality: {fp8: 99.6 %}
    max_model_len: 32k
    engine: {max_num_seqs: 64, chunked_prefill: false}
    allow: {regions: [eu-*], terms: [1y]}
    reliability: {spare_replicas: 2}
    checkpoints: {fp8: org/repo}
workloads:
  "7":
    model: chat.v2
    traffic:
      hourly: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24.5]
      timezone: Europe/Berlin
      input_tokens: 1000
      output_tokens: {p50: 100, p90: 200, p95: 300, p99: 900}
    slo: {e2e_p95: 1 min}
supply:
  offers:
    - {name: cloud, provider: aws, regions: [us-east-1, eu-west-1], instances: [p5.48xlarge], terms: [1y], upfront: all}
    - {name: rack, provider: owned, gpus: [L40S], gpus_per_node: 8, nodes: 2, price: 1.10 USD/gpu/h, until: 2027-09-30}
  limits: {gpus: {L40S: 32}}
reliability: {headroom: 10 %}
planning: {objective: gpus, hours_per_month: 720}
policies:
  - {forbid: {gpus: [T4]}, level: warn, waive: {reason: "no: yes", by: ops, until: 2027-01-31}}
  - {require: {kv_cache: [bf16], regions: [us-*]}, id: "yes"}
  - {max_share: {match: {provider: aws}, share: 60 %}}
  - {max_price_age: 30 day}
  - {min_latency_margin: 0.05, workloads: ['?']}
  - {max_cost_per_million_tokens: 0.80 USD/Mtok}
"""


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    """The catalog of this repository."""
    return Catalog.open()


def loaded(text: str) -> LoadedSpec:
    """Load a spec that is right."""
    found = load_spec(text, "fleet.yaml")
    assert found.spec is not None, found.diagnostics
    return found


def meaning(spec: FleetSpec | None) -> FleetSpec:
    """Return a spec with what `defaults` and `reliability` give merged into the models, as the planner sees it."""
    assert spec is not None
    models = {
        name: model.model_copy(update={"reliability": spec.reliability_of(name), "weights": None, "kv_cache": None})
        for name, model in spec.models.items()
    }
    lengths = {name: model.model_copy(update={"max_model_len": None}) for name, model in models.items()}
    planning = spec.planning.model_copy(update={"as_of": None})
    return spec.model_copy(update={"defaults": type(spec.defaults)(), "models": lengths, "planning": planning})


@pytest.mark.parametrize(
    "text", [FULL, *(p.read_text(encoding="utf-8") for p in SPECS)], ids=["full", *(p.stem for p in SPECS)]
)
def test_the_config_is_a_spec_that_means_the_same(text: str, shipped: Catalog) -> None:
    spec = loaded(text)
    config = render_config(spec, shipped, Options())
    again = loaded(config)

    assert meaning(again.spec) == meaning(spec.spec)
    assert _values(render_config(again, shipped, Options())) == _values(config)


def _values(config: str) -> list[str]:
    return [line.rpartition("  # ")[0].rstrip() for line in config.splitlines()]


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ('fleet: "all: of it"', "fleet.yaml:3"),
        ("min_quality: 98 %", "fleet.yaml:5"),
        ('version: "0.20"', "fleet.yaml:5"),
        ("max_num_seqs: 64", "fleet.yaml:11"),
        ("gpu_memory_utilization: 90 %", "default"),
        ("weights: [bf16, fp8, int4, int8]", "default: native format and narrower ones"),
        ("kv_cache: [bf16, fp8]", "default"),
        ("headroom: 10 %", "from reliability"),
        ("spare_replicas: 2", "fleet.yaml:13"),
        ("# tensor:", "default: all that are legal"),
        ("model: chat.v2", "fleet.yaml:17"),
        ("price: 1.10 USD/gpu/h", "fleet.yaml:27"),
        ("objective: gpus", "fleet.yaml:30"),
        ("gap: 0.1 %", "--gap"),
        ("as_of: 2026-12-01", "--as-of"),
        ("confidence: 80 %", "default"),
    ],
)
def test_every_value_names_its_source(line: str, source: str, shipped: Catalog) -> None:
    config = render_config(loaded(FULL), shipped, Options(as_of=date(2026, 12, 1), gap=0.001))
    lines = [value.rpartition("  # ") for value in config.splitlines()]

    assert (line, source) in [(re.sub(r"^ *(- )?", "", value).rstrip(), place) for value, _, place in lines]


def test_defaults_of_the_catalog(shipped: Catalog) -> None:
    text = "\n".join(line for line in FULL.splitlines() if "max_model_len" not in line)
    lines = render_config(loaded(text), shipped, Options()).splitlines()

    assert f"  as_of: {shipped.newest_price_date()}" in [line.partition("  # ")[0].rstrip() for line in lines]
    assert any(re.fullmatch(r" +max_model_len: 32768 +# default", line) for line in lines)
    assert lines[-1].startswith(f"# catalog: {shipped.root} ")
