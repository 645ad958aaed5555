"""Small specs for tests: one that is right, and ways to bend it."""

from __future__ import annotations

from planner.spec import FleetSpec, LoadedSpec, WorkloadSpec, load_spec

MINIMAL = """\
version: 1
fleet: small
models:
  chat: {use: llama-3.3-70b}
workloads:
  assistant:
    model: chat
    traffic: {rate: 2 req/s, input_tokens: 1000, output_tokens: 200}
supply:
  offers: [{provider: aws, gpus: [L40S]}]
"""

EVERYTHING = """\
version: 1
requires_planner: ">=0.1, <9"
fleet: all
x-notes: {anything: [goes, null]}
catalog: {path: ../catalog}
defaults: {min_quality: 98 %, engine: {name: vllm, version: "0.20"}}
models:
  chat:
    use: llama-3.3-70b
    weights: [bf16, fp8]
    kv_cache: [fp8]
    quality: {fp8: 99.6 %}
    quality_evidence: family
    max_model_len: 32k
    engine: {max_num_seqs: 64, chunked_prefill: false, prefix_caching: false, block_size: 32}
    parallelism: {tensor: [1, 2, 4], pipeline: [1], expert: [1], attention_data: [1]}
    max_shapes: 3
    uniform_format: false
    allow: {gpus: [], providers: [aws], regions: [eu-*], countries: [DE, FR], terms: [1y]}
    deny: {provider: gcp, region: us-west1, country: US}
    prefer: {gpus: [L40S], penalty: 7 %}
    reliability: {spare_replicas: 2, survive: zone, min_replicas: 2}
    checkpoints: {fp8: org/repo}
    x-comment: ours
workloads:
  assistant:
    model: chat
    traffic:
      rate: {peak: 12 req/s, mean: 5 req/s}
      input_tokens: {p50: 600, p90: 2000, p95: 3000, p99: 9000, mean: 1000}
      output_tokens: {mean: 211, p95: 451}
      cached_input: 45 %
      arrival_cv2: 1.2
      peak_to_mean_30s: 1.6
    slo: {ttft_p50: 1 s, tpot_p90: 50 ms, itl_p99: 1 s, e2e_p95: 1 min}
    allow: {countries: [DE]}
    deny: {gpus: [T4]}
    spot: {max_share: 40 %, on_demand_floor: false}
    compare_api: {name: "api, 2026", input: 0.15 USD/Mtok, cached_input: 0.075 USD/Mtok, output: 0.60 USD/Mtok}
supply:
  offers:
    - name: aws
      provider: aws
      regions: [us-east-1, us-west-2]
      instances: [p5.48xlarge]
      terms: [on-demand, 1y, 3y]
      price: 5.20 USD/node/h
      nodes: 6
      committed: 4
      until: 2027-09-30
      upfront: none
    - name: rack
      provider: owned
      country: DE
      gpus: [L40S]
      gpus_per_node: 8
      price: 1.10 USD/gpu/h
      nodes: 1
      host_power: 1.8 kW
      pue: 1.3
      electricity: 0.12 USD/kWh
  limits:
    gpus: {L40S: 32}
    gpu_types: 3
    power: 120 kW
    rules:
      - {match: {provider: aws, terms: [1y]}, gpus: 64}
      - {match: {region: us-*}, nodes: 8}
      - {match: {country: US}, vcpus: 1k}
      - {match: {}, usd_per_month: 300k USD/month}
      - {match: {providers: [aws]}, share: 60 %}
  budget: 400k USD/month
reliability: {spare_replicas: 1, headroom: 10 %}
planning: {objective: gpus, confidence: 90 %, hours_per_month: 720, gap: 1 %, estimated_prices: true, as_of: 2026-12-01}
policies:
  - {max_monthly_cost: 400000 USD, id: cap}
  - {forbid: {gpus: [T4]}, level: warn, waive: {reason: launch, by: ops, until: 2027-01-31}}
  - {require: {countries: [US, DE], weights: [fp8], kv_cache: [fp8, bf16]}}
  - {max_share: {each: provider, share: 60 %}}
  - {max_share: {match: {region: us-*}, share: 70 %}, id: us}
  - {max_price_age: 30 day}
  - {min_latency_margin: 5 %, workloads: [assis*]}
  - {max_cost_per_million_tokens: 0.80 USD/Mtok}
  - {min_capacity_margin: 10 %}
  - {max_monthly_cost_increase: 15 %}
  - {max_gap: 1 %}
  - {min_provenance: B}
  - {min_certificate: inconclusive}
deployed: []
"""
"""Every key that is built, each with a value of its own."""


def loaded(*changes: tuple[str, str], add: str = "") -> LoadedSpec:
    """Load the minimal spec with replacements and appended text."""
    text = MINIMAL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return load_spec(text + add, "f.yaml")


def spec_of(*changes: tuple[str, str], add: str = "") -> FleetSpec:
    """Return the changed minimal spec, which must be without findings."""
    result = loaded(*changes, add=add)
    assert result.diagnostics == ()
    assert result.spec is not None
    return result.spec


def workload_of(traffic: str) -> WorkloadSpec:
    """Return the workload with this traffic, as a flow mapping's content."""
    return spec_of(("rate: 2 req/s, input_tokens: 1000, output_tokens: 200", traffic)).workloads["assistant"]


def codes(result: LoadedSpec) -> list[tuple[str, int, int]]:
    """Return code, line and column of each finding."""
    return [(d.code, d.span.line, d.span.column) for d in result.diagnostics if d.span is not None]
