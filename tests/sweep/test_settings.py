"""What `--set` says: lists, ranges and distributions, the scenarios that they make, and what is refused."""

from __future__ import annotations

import math
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swept import OFFER, PRICE, RATE, TEXT, base, defined

from planner.candidates.references import open_catalog
from planner.diagnostics import DiagnosticError
from planner.spec import load_spec
from planner.sweep.base import Base
from planner.sweep.check import read_settings
from planner.sweep.distributions import DistributionError, read_distribution, uniform_of
from planner.sweep.scenario import DefinitionError, Mode
from planner.sweep.setting import SettingError, read_setting


def values(text: str) -> list[str]:
    return [value.text for value in read_setting(text, lambda _key: "").values]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", ["1"]),
        ("a = 1 req/s , 2 req/s", ["1 req/s", "2 req/s"]),
        ("a=[x, y],{k: 1, l: 2}", ["[x, y]", "{k: 1, l: 2}"]),
        ("a='1, 2',\"3\"", ["'1, 2'", '"3"']),
        ("a=it's,2", ["it's", "2"]),
        ("a=10..30/5 req/s", ["10 req/s", "15 req/s", "20 req/s", "25 req/s", "30 req/s"]),
        ("a=1..2/2 USD/gpu/h,9 USD/gpu/h", ["1 USD/gpu/h", "2 USD/gpu/h", "9 USD/gpu/h"]),
        ("a=1..8/8", ["1", "2", "3", "4", "5", "6", "7", "8"]),
        ("a=1 req/s..3 req/s/3", ["1 req/s", "2 req/s", "3 req/s"]),
        ("a=50%..90%/3,95 %", ["50 %", "70 %", "90 %", "95 %"]),
        ("a=1..3/2req/s", ["1 req/s", "3 req/s"]),
        ("a=1..2000000/2 USD/month", ["1 USD/month", "2000000 USD/month"]),
        ("a=b=c", ["b=c"]),
        ("a=x~y", ["x~y"]),
    ],
)
def test_lists_and_ranges(text: str, expected: list[str]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    "text", ["", "a", "=1", "~uniform(1, 2)", "a=", "a=1,,2", "a=1..2/1", "a=1..2/99999999", "a=1 s..2 ms/2", "a~b"]
)
def test_a_setting_that_cannot_be_read_says_where(text: str) -> None:
    with pytest.raises(SettingError) as caught:
        values(text)
    assert 0 <= caught.value.start < max(1, caught.value.end)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        setting = read_setting(text, lambda _key: "")
    except SettingError:
        return
    assert setting.key
    assert setting.values


@pytest.mark.parametrize(
    ("name", "parameters", "mean"),
    [
        ("lognormal", ["12 req/s", "30 %"], 12.0),
        ("normal", ["12 req/s", "0.1"], 12.0),
        ("uniform", ["2 req/s", "4"], 3.0),
        ("triangular", ["1", "2", "6 req/s"], 3.0),
    ],
)
def test_draws_have_the_mean_that_was_asked_for(name: str, parameters: list[str], mean: float) -> None:
    drawn = read_distribution(name, parameters, "req/h")
    texts = [drawn.value(uniform_of(1, number, "key")) for number in range(1, 4001)]
    numbers = [float(text.removesuffix(" req/s")) for text in texts]

    assert math.isclose(fmean(numbers), mean, rel_tol=0.02)
    assert min(numbers) > 0.0
    if name == "lognormal":
        assert math.isclose(pstdev(numbers) / fmean(numbers), 0.3, rel_tol=0.05)


def test_a_wide_normal_distribution_stays_above_zero() -> None:
    drawn = read_distribution("normal", ["1", "300 %"], "")
    assert all(float(drawn.value(u)) > 0.0 for u in (1e-12, 0.01, 0.5, 0.99))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gauss", ["1", "2"]),
        ("normal", ["1"]),
        ("normal", ["1", "-3 %"]),
        ("normal", ["0", "3 %"]),
        ("normal", ["1", "3 ms"]),
        ("uniform", ["2", "1"]),
        ("uniform", ["1 ms", "2 s"]),
        ("uniform", ["a", "b"]),
        ("triangular", ["1", "1", "1"]),
    ],
)
def test_a_distribution_that_is_none_is_refused(name: str, parameters: list[str]) -> None:
    with pytest.raises(DistributionError):
        read_distribution(name, parameters, "")


def test_parameters_without_a_unit_have_that_of_the_spec() -> None:
    (setting,) = read_settings([f"{RATE}~lognormal(3, 30 %)"], base())
    assert setting.value_at(0.5).endswith(" req/s")


def test_a_grid_changes_the_last_key_first() -> None:
    scenarios = defined(f"{RATE}=1 req/s,2 req/s", "planning.gap=1 %,2 %").scenarios()

    assert [s.number for s in scenarios] == [1, 2, 3, 4]
    assert [tuple(v for _, v in s.values) for s in scenarios] == [
        ("1 req/s", "1 %"),
        ("1 req/s", "2 %"),
        ("2 req/s", "1 %"),
        ("2 req/s", "2 %"),
    ]


def test_values_side_by_side() -> None:
    scenarios = defined(f"{RATE}=1 req/s,2 req/s", "planning.gap=1 %,2 %", mode=Mode.ZIP).scenarios()
    assert [tuple(v for _, v in s.values) for s in scenarios] == [("1 req/s", "1 %"), ("2 req/s", "2 %")]


def test_draws_depend_on_seed_number_and_key_alone() -> None:
    rate, gap = f"{RATE}~lognormal(2 req/s, 30 %)", "planning.gap=1 %,2 %,3 %"
    few = defined(rate, mode=Mode.SAMPLE, samples=5).scenarios()
    more = defined(gap, rate, mode=Mode.SAMPLE, samples=50).scenarios()
    other = defined(rate, mode=Mode.SAMPLE, samples=5, seed=2).scenarios()

    assert [s.values[0] for s in few] == [s.values[1] for s in more[:5]]
    assert few != other
    assert few[0].values == ((RATE, "1.53945 req/s"),)  # the same on every machine and in every release
    assert {s.values[0][1] for s in more} == {"1 %", "2 %", "3 %"}


@pytest.mark.parametrize(
    ("texts", "mode", "message"),
    [
        ([f"{RATE}~uniform(1 req/s, 2 req/s)"], Mode.GRID, "--sample"),
        ([f"{RATE}=1 req/s,2 req/s", "planning.gap=1 %"], Mode.ZIP, "as many values"),
        ([f"{RATE}=1..9/1000 req/s", "planning.gap=0.001..0.01/1000"], Mode.GRID, "1,000,000 scenarios"),
    ],
)
def test_settings_that_make_no_sweep(texts: list[str], mode: Mode, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        defined(*texts, mode=mode).scenarios()


@pytest.mark.parametrize(
    ("text", "code", "column", "label"),
    [
        ("workloads.asistant.traffic.rate=1 req/s", "sweep/unknown-path", 1, "did you mean `assistant`?"),
        ("workloads.assistant.slo.ttft_p59=1 s", "spec/unknown-key", 1, "did you mean `ttft_p95`?"),
        ("planing.gap=1 %", "spec/unknown-key", 1, "did you mean `planning`?"),
        (f"{RATE}=1 req/s,12 GB", "spec/unknown-unit", 42, None),
        (f"{RATE}~uniform(1 GB, 2 GB)", "spec/unknown-unit", 34, None),
        (f"{RATE}~uniform(-1 req/s, 4 req/s)", "spec/out-of-range", 34, None),
        (f"{RATE}~triangular(1, 2, 1e9)", "spec/out-of-range", 34, None),
        (f"{RATE}={{peak: 2 req/s, peak: 1 req/s}}", "yaml/duplicate-key", 34, None),
        (f"{RATE}={{peak: 2 req/s", "yaml/syntax", 34, None),
        (f"{RATE}=2 req/s\nfleet: other", "yaml/syntax", 34, None),
        ("x-note=[*unknown]", "yaml/undefined-alias", 8, None),
        (f"{PRICE}=null", "spec/not-a-quantity", len(PRICE) + 2, None),
        ("supply.offers.clud.price=1 USD/gpu/h", "sweep/unknown-path", 1, "did you mean `cloud`?"),
        ("supply.offers.0.price=1 USD/gpu/h", "sweep/unknown-path", 1, ""),
        (f"{PRICE}s=1 USD/gpu/h", "sweep/unknown-path", 1, f"did you mean `{OFFER}`?"),
        (f"{PRICE}=3", "spec/missing-unit", len(PRICE) + 2, None),
        ("catalog.gpus.L41S.tdp_w=3", "sweep/unknown-path", 1, "did you mean `gpus.L40S`?"),
        ("catalog.gpus.L40S.tdp=3", "catalog/unknown-key", 1, ""),
        ("catalog.gpus.L40S.tdp_w=much", "catalog/invalid-value", 25, ""),
        ("catalog.calibration.default.constants.nothing=3", "sweep/unknown-path", 1, ""),
        ("catalog.gpus.L40S=3", "sweep/unknown-path", 1, ""),
        ("models.chat.use=llama-9", "catalog/unknown-model", 17, None),
        ("nothing", "sweep/setting", 1, ""),
    ],
)
def test_what_is_wrong_with_a_setting_is_located_in_it(text: str, code: str, column: int, label: str | None) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read_settings(["planning.gap=1 %", text], base())

    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.code, found.span.path, found.span.line, found.span.column) == (code, "--set", 2, column)
    assert label is None or found.label == label


def test_a_distribution_may_begin_at_zero() -> None:
    assert read_settings([f"{RATE}~uniform(0, 4)", f"{PRICE}='1 USD/node/h'"], base())


def test_a_key_that_is_set_twice_is_refused() -> None:
    with pytest.raises(DiagnosticError, match="set twice"):
        read_settings([f"{RATE}=1 req/s", f"{RATE.upper()}=2 req/s"], base())


def test_a_section_that_undoes_a_key_in_it_is_refused() -> None:
    section, price = (
        "workloads.assistant.traffic={rate: 1 req/s, input_tokens: 9, output_tokens: 9}",
        f"{PRICE}=1 USD/node/h",
    )
    assert len(read_settings([section, price, f"{RATE}=2 req/s"], base())) == 3
    with pytest.raises(DiagnosticError, match="would undo"):
        read_settings([f"{RATE}=2 req/s", price, section], base())


def test_names_that_differ_in_case_are_told_apart() -> None:
    own = TEXT[TEXT.index("  assistant:") : TEXT.index("supply:")]
    loaded = load_spec(TEXT.replace(own, own + own.replace("assistant", "Assistant")), "small.yaml")
    lower, upper = "workloads.assistant.traffic.rate", "workloads.Assistant.traffic.rate"
    both = Base(loaded, open_catalog(loaded))

    assert loaded.spec is not None
    assert len(read_settings([f"{lower}=1 req/s", f"{upper}=3 req/s"], both)) == 2
    changed, _ = both.variant(((upper, "3 req/s"), (lower, "1 req/s")))
    assert changed.spec is not None
    assert [w.traffic.rate.peak for w in changed.spec.workloads.values()] == [1.0, 3.0]
