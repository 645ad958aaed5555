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
