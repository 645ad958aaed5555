"""Classes of knowledge and the factor for a confidence."""

from __future__ import annotations

import copy
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from speed_cases import DEEPSEEK_R1, GPT_OSS_120B, LLAMA_8B, calibration, constants

from planner.physics.bands import (
    CLASSES,
    FAMILIES,
    METRICS,
    OWN_ROWS,
    Bands,
    Coverage,
    CoverageRow,
    Provenance,
    factor,
    family_kind,
    provenance_class,
    provenance_of,
)

BANDS = Bands.from_mapping(calibration())
COVERAGE = Coverage.from_mapping(calibration())


@pytest.mark.parametrize(
    ("provenance", "metric", "p80", "p95"),
    [
        ("A", "throughput", 1.7, 2.3),
        ("A", "ttft", 2.0, 5.0),
        ("B", "throughput", 1.8, 2.4),
        ("B", "ttft", 2.5, 6.0),
        ("C", "throughput", 2.0, 3.0),
        ("C", "ttft", 3.5, 10.0),
        ("D", "throughput", 2.5, 4.0),
        ("D", "ttft", 4.0, 15.0),
    ],
)
def test_two_sided_bands_are_one_sided_90_and_97_5(provenance: str, metric: str, p80: float, p95: float) -> None:
    assert factor(BANDS, provenance, metric, 0.90) == pytest.approx(p80)
    assert factor(BANDS, provenance, metric, 0.975) == pytest.approx(p95)
    assert factor(BANDS, provenance, metric, 0.5) == 1.0


def test_the_default_confidence_by_hand() -> None:
    score = NormalDist().inv_cdf(0.8) / NormalDist().inv_cdf(0.9)
    assert factor(BANDS, "A", "throughput", 0.8) == pytest.approx(1.7**score)
    assert factor(BANDS, "A", "throughput", 0.8) == pytest.approx(1.4169, abs=1e-4)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.sampled_from(CLASSES), st.sampled_from(METRICS), st.floats(0.001, 0.998), st.floats(1e-4, 0.1))
def test_more_confidence_asks_for_more(provenance: str, metric: str, confidence: float, step: float) -> None:
    more = min(confidence + step, 0.999)
    assert factor(BANDS, provenance, metric, more) > factor(BANDS, provenance, metric, confidence)
    mirrored = factor(BANDS, provenance, metric, 1 - confidence)
    assert mirrored * factor(BANDS, provenance, metric, confidence) == pytest.approx(1.0)


def test_less_knowledge_asks_for_more() -> None:
    for metric in METRICS:
        factors = [factor(BANDS, name, metric, 0.8) for name in CLASSES]
        assert factors == sorted(factors)
        assert len(set(factors)) == len(CLASSES)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.2, 1.5, float("nan")])
def test_certainty_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        factor(BANDS, "A", "ttft", confidence)


def test_unknown_class_and_metric_are_refused() -> None:
    with pytest.raises(ValueError, match="'E'"):
        factor(BANDS, "E", "ttft", 0.8)
    with pytest.raises(ValueError, match="'itl'"):
        factor(BANDS, "A", "itl", 0.8)


ENGINE_CLASSES = {"modern": "vllm_new", "old": "vllm_old", "local": "exllama"}


def class_of(coverage: Coverage, gpu: str, architecture: str, generation: str, family: str) -> str:
    """The class of a prediction for bf16 weights on the engine that stands for a generation."""
    return provenance_class(coverage, (ENGINE_CLASSES[generation], gpu, family, "bf16"), architecture, generation)


@pytest.mark.parametrize(
    ("gpu", "architecture", "generation", "family", "expected"),
    [
        ("H100-SXM-80GB", "Hopper", "modern", "dense", "A"),
        ("H100-SXM-80GB", "Hopper", "modern", "mla-moe", "B"),
        ("H20-96GB", "Hopper", "modern", "moe", "B"),
        ("MI300X", "CDNA3", "modern", "dense", "C"),
        ("MI300X", "CDNA3", "old", "dense", "A"),
        ("V100-SXM2-32GB", "", "modern", "dense", "C"),
        ("X1", "", "old", "moe", "C"),
        ("X1", "", "local", "mla-moe", "D"),
        ("H100-SXM-80GB", "Hopper", "modern", "hybrid", "D"),
    ],
)
def test_class_follows_what_was_measured(
    gpu: str, architecture: str, generation: str, family: str, expected: str
) -> None:
    assert class_of(COVERAGE, gpu, architecture, generation, family) == expected


def test_rows_outside_of_the_fit_do_not_raise_the_class() -> None:
    seen = [row for row in COVERAGE.rows if row.gpu == "MI355X" and row.family == "mla-moe"]
    assert seen
    assert not any(row.fitted for row in seen)
    assert class_of(COVERAGE, "MI355X", "CDNA4", "modern", "mla-moe") == "D"
    fitted = Coverage(tuple(replace(row, fitted=True) for row in COVERAGE.rows))
    assert class_of(fitted, "MI355X", "CDNA4", "modern", "mla-moe") == "A"


def test_the_same_combination_is_known_best_by_own_rows() -> None:
    row = next(row for row in COVERAGE.rows if row.fitted and row.generation == "modern")
    generation, architecture = row.generation, row.architecture_class

    def known(*rows: CoverageRow) -> Provenance:
        return provenance_of(Coverage((*COVERAGE.rows, *rows)), row.combination, architecture, generation)

    assert known() == Provenance("A", "published")
    assert known().line == "published"
    assert known(replace(row, rows=OWN_ROWS - 1, own=True)).measured == "published"
    assert known(replace(row, rows=OWN_ROWS, own=True)) == Provenance("A", "own")
    few = [replace(row, rows=count, own=True) for count in (2, OWN_ROWS - 2)]
    assert known(*few).measured == "own"
    other = (row.engine_class, row.gpu, row.family, "fp32")
    assert provenance_of(COVERAGE, other, architecture, generation) == Provenance("A", "none")


def test_a_few_own_rows_make_no_class_better() -> None:
    """What nobody published stays in its class, its neighbours too, until own rows are as many as the band was measured with."""
    row = replace(COVERAGE.rows[0], gpu="X1", architecture_class="", family="hybrid", own=True, fitted=True)

    def letter(rows: int) -> Provenance:
        coverage = Coverage((*COVERAGE.rows, replace(row, rows=rows)))
        return provenance_of(coverage, row.combination, "", row.generation)

    before = provenance_of(COVERAGE, row.combination, "", row.generation)
    assert before.letter != "A"
    assert letter(1) == letter(OWN_ROWS - 1) == before
    assert letter(OWN_ROWS) == Provenance("A", "own")


def test_a_file_without_bands_for_combinations_takes_those_of_the_class() -> None:
    data = copy.deepcopy(calibration())
    for line in ("own", "published"):
        data["bands"].pop(line, None)
    read = Bands.from_mapping(data).by_line
    assert read["own"] == read["published"] == read["A"]


def test_two_gpus_without_a_class_are_not_alike() -> None:
    rows = tuple(replace(row, architecture_class="") for row in COVERAGE.rows if row.generation == "modern")
    assert class_of(Coverage(rows), "X1", "", "old", "dense") == "D"


def test_families() -> None:
    assert [family_kind(arch) for arch in (LLAMA_8B, GPT_OSS_120B, DEEPSEEK_R1)] == ["dense", "moe", "mla-moe"]
    assert family_kind(replace(GPT_OSS_120B, n_state_layers=4)) == "hybrid"


def test_coverage_speaks_of_known_classes_only() -> None:
    known = constants()
    assert sum(row.rows for row in COVERAGE.rows if row.fitted) == calibration()["rows"]
    for row in COVERAGE.rows:
        assert row.family in FAMILIES
        assert row.architecture_class in known.architectures
        assert row.generation in known.generations
        line = known.engines.get(row.engine_class)
        assert line is None or line.generation == row.generation
        assert line is not None or not row.fitted


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("bands",), None, "bands must be a mapping"),
        (("bands", "B"), None, "bands.B.throughput is missing"),
        (("bands", "B", "ttft"), None, "bands.B.ttft is missing"),
        (("bands", "B", "ttft", "p95"), "wide", "bands.B.ttft.p95 must be a number"),
        (("bands", "B", "ttft", "p95"), 1.5, "1 <= p80 <= p95"),
        (("coverage",), None, "coverage must be a list"),
        (("coverage", 0, "gpu"), None, r"coverage\[0\].gpu must be a str"),
        (("coverage", 0, "rows"), "many", r"coverage\[0\].rows must be a int"),
    ],
)
def test_a_wrong_file_names_the_place(path: tuple[Any, ...], value: object, message: str) -> None:
    data: Any = copy.deepcopy(calibration())
    place = data
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    read = Bands.from_mapping if path[0] == "bands" else Coverage.from_mapping
    with pytest.raises(ValueError, match=message):
        read(data)
