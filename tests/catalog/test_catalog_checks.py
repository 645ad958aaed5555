"""`check_catalog`: the shipped catalog has no error, and each kind of error is found."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.catalog import Catalog
from planner.catalog.checks import check_catalog
from planner.diagnostics import DiagnosticError, Severity


def codes(root: Path, severity: Severity = Severity.ERROR) -> list[str]:
    return [d.code for d in check_catalog(Catalog.open(root)) if d.severity is severity]


def test_the_shipped_catalog_has_no_error(shipped: Catalog) -> None:
    assert [d for d in check_catalog(shipped) if d.severity is Severity.ERROR] == []


def test_the_shipped_catalog_states_its_doubts(shipped: Catalog) -> None:
    found = {d.code for d in check_catalog(shipped)}

    assert found == {"catalog/doubt", "catalog/estimated-memory", "catalog/low-confidence", "catalog/undated-price"}


def test_prices_go_stale(shipped: Catalog) -> None:
    stale = [d for d in check_catalog(shipped, date(2027, 6, 1)) if d.code == "catalog/stale-price"]

    assert any(d.message == "gcp, price list components: 306 days old" for d in stale)
    assert all(d.span is not None and "catalog/offers/" in d.span.path for d in stale)


EDITS = [
    ("gpus/H100-SXM-80GB.yaml", "tdp_w: 700", "tdp_w: hot", "catalog/invalid-value"),
    ("offers/acme.yaml", "gpu: H100-SXM-80GB", "gpu: H100-SXM-800GB", "catalog/unknown-gpu"),
    ("offers/acme.yaml", "prices: {main:", "prices: {other: {moon-1: [1]}, main:", "catalog/unknown-price-list"),
    ("offers/acme.yaml", "{moon-1:", "{mars-1: [1], moon-1:", "catalog/unknown-region"),
    ("offers/acme.yaml", "[20, ~, 12]", "[20, -1]", "catalog/invalid-value"),
    ("offers/acme.yaml", "[20, ~, 12]", "[1, 2, 3, 4, 5]", "catalog/invalid-value"),
    ("offers/acme.yaml", '"2026-07-30"', '"2026-07-29"', "catalog/price-date"),
    ("offers/acme.yaml", "provider: acme", "provider: aws", "catalog/misplaced"),
    ("offers/regions.yaml", "US", "USA", "catalog/invalid-value"),
    ("offers/commitments.yaml", "ratio: 0.63", "ratio: 63", "catalog/invalid-value"),
    ("models/openai/gpt-oss-20b.yaml", "total: 20914757184", "total: 21914757184", "catalog/parameter-count"),
    (
        "models/openai/gpt-oss-20b.yaml",
        "parameters:\n",
        'parameters:\n  shape_exception: "none"\n',
        "catalog/needless-exception",
    ),
    ("models/openai/gpt-oss-20b.yaml", "native_format: mxfp4", "native_format: fp3", "catalog/unknown-format"),
    ("models/openai/gpt-oss-20b.yaml", "vocab: 201088", "vocab: -1", "catalog/invalid-value"),
    ("aliases.yaml", "h100-sxm5: [H100-SXM-80GB]", "h100-sxm5: [H100-SXM-800GB]", "catalog/unknown-name"),
    ("labels.yaml", "absent: names no GPU", 'absent: ""', "catalog/invalid-value"),
    ("quality/kv.yaml", "  fp8:\n", "  fp9:\n", "catalog/unknown-format"),
    ("quality/kv.yaml", "family: gpt-oss", 'family: ""', "catalog/invalid-value"),
    ("engines/vllm.yaml", 'since: "0.7"', 'since: "first"', "catalog/invalid-value"),
]


@pytest.mark.parametrize(
    ("name", "old", "new", "code"), EDITS, ids=[f"{e[0]}-{e[3][8:]}-{i}" for i, e in enumerate(EDITS)]
)
def test_errors_are_found(scratch: Path, name: str, old: str, new: str, code: str) -> None:
    before = codes(scratch)
    path = scratch / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))

    assert codes(scratch).count(code) > before.count(code)


def test_a_second_price_for_one_offer(scratch: Path) -> None:
    path = scratch / "offers/acme.yaml"
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")

    assert "catalog/duplicate-offer" in codes(scratch)


def test_spot_above_on_demand_is_doubted(scratch: Path) -> None:
    path = scratch / "offers/acme.yaml"
    path.write_text(path.read_text().replace("[20, ~, 12]", "[20, 21]"))

    assert "catalog/doubt" in codes(scratch, Severity.WARNING)


def test_one_bad_file_hides_no_other(scratch: Path) -> None:
    (scratch / "gpus/H100-SXM-80GB.yaml").write_text("name: [\n")
    (scratch / "models/openai/gpt-oss-20b.yaml").write_text("a: 1\n")

    paths = {d.span.path.rpartition("/")[2] for d in check_catalog(Catalog.open(scratch)) if d.span}

    assert {"H100-SXM-80GB.yaml", "gpt-oss-20b.yaml"} <= paths


@pytest.mark.parametrize("kind", ["gpus/H100-SXM-80GB", "models/openai/gpt-oss-20b", "engines/vllm", "offers/acme"])
def test_names_that_differ_in_case_only(scratch: Path, kind: str) -> None:
    path = scratch / f"{kind}.yaml"
    twin = path.with_name(path.stem.swapcase() + ".yaml")
    twin.write_text(path.read_text().replace(path.stem, path.stem.swapcase()))
    found = [d for d in check_catalog(Catalog.open(scratch)) if d.code == "catalog/duplicate-name"]

    assert len(found) == 1
    assert path.stem.casefold() in found[0].message.casefold()
    assert found[0].span is not None


@pytest.mark.parametrize(
    "name",
    [
        "calibration/own.yml",
        "gpus/X.YML",
        "models/a/b.yml",
        "models/b.yml",
        "offers/x.Yaml",
        "quality/kv.yml",
        "labels.yml",
    ],
)
def test_a_file_by_another_ending_is_an_error(scratch: Path, name: str) -> None:
    before = set(codes(scratch))
    (scratch / name).parent.mkdir(exist_ok=True)
    (scratch / name).write_text("a: 1\n")
    assert set(codes(scratch)) - before == {"catalog/misnamed"}


def test_other_files_beside_those_of_the_catalog_are_left_alone(scratch: Path) -> None:
    before = codes(scratch)
    for name in ("README.md", "gpus/notes.txt", "gpus/.hidden.yml"):
        (scratch / name).write_text("notes")
    assert codes(scratch) == before


def test_an_optional_file_by_another_ending_is_not_taken_as_absent(scratch: Path) -> None:
    (scratch / "aliases.yaml").rename(scratch / "aliases.yml")
    with pytest.raises(DiagnosticError, match=r"aliases\.yml is not read"):
        Catalog.open(scratch).gpu("h100")
