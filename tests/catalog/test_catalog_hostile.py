"""Catalogs of strangers: every bad file is a located diagnostic, and no name leads out of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.catalog import Catalog, UnknownName, find_catalog
from planner.diagnostics import DiagnosticError

GPU = "gpus/H100-SXM-80GB.yaml"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def refused(root: Path) -> tuple[str, str, int]:
    with pytest.raises(DiagnosticError) as caught:
        Catalog.open(root).gpu("H100-SXM-80GB")
    (first, *_) = caught.value.diagnostics
    place = first.span
    return first.code, first.message, place.line if place else 0


def test_unknown_key(scratch: Path) -> None:
    edit(scratch / GPU, "tdp_w: 700", "tdp_w: 700\nwatts: 700")

    code, message, line = refused(scratch)

    assert (code, message) == ("catalog/unknown-key", "unknown key `watts`")
    assert (scratch / GPU).read_text().splitlines()[line - 1] == "watts: 700"


@pytest.mark.parametrize(
    ("old", "new", "code", "key"),
    [
        ("usable_gib: 79.1", "usable_gib: -1", "catalog/invalid-value", "memory.usable_gib"),
        ("usable_gib: 79.1", "usable_gib: .inf", "catalog/invalid-value", "memory.usable_gib"),
        ("usable_gib: 79.1", "usable_gib: .nan", "catalog/invalid-value", "memory.usable_gib"),
        ("usable_gib: 79.1", 'usable_gib: "79.1"', "catalog/invalid-value", "memory.usable_gib"),
        ("usable_gib: 79.1", "other: 79.1", "catalog/missing-key", "memory.usable_gib"),
        ("vendor: NVIDIA", "vendor: 7", "catalog/invalid-value", "vendor"),
        ("vendor: NVIDIA", "vendor: [NVIDIA]", "catalog/invalid-value", "vendor"),
        ("architecture_class: Hopper", "architecture_class: Harrier", "catalog/invalid-value", "architecture_class"),
    ],
)
def test_bad_values_are_located(scratch: Path, old: str, new: str, code: str, key: str) -> None:
    edit(scratch / GPU, old, new)
    with pytest.raises(DiagnosticError) as caught:
        Catalog.open(scratch).gpu("H100-SXM-80GB")

    wanted = [d for d in caught.value.diagnostics if d.code == code and f"`{key}`" in d.message]

    assert len(wanted) == 1
    assert wanted[0].span is not None
    assert wanted[0].span.path.endswith(GPU)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\x02",
        b"\xff\xfe",
        b"- a\n- b\n",
        b"name: [\n",
        b"name: a\nname: b\n",
        b"name: !!python/object/apply:os.system [id]\n",
        b"a: &a [x, x, x, x, x, x, x, x, x]\n"
        + b"".join(b"b%d: &b%d [*a, *a, *a, *a, *a, *a, *a, *a]\n" % (i, i) for i in range(3)),
        b"x: " + b"[" * 5000,
        b"a: " + b"x" * 5_000_001,
    ],
    ids=["empty", "binary", "utf-16", "list", "syntax", "duplicate", "tag", "unknown", "deep", "large"],
)
def test_bad_files_are_diagnostics(scratch: Path, content: bytes) -> None:
    (scratch / GPU).write_bytes(content)
    with pytest.raises(DiagnosticError) as caught:
        Catalog.open(scratch).gpu("H100-SXM-80GB")

    assert all(GPU in (d.span.path if d.span else d.message) for d in caught.value.diagnostics)


def test_a_name_must_match_its_path(scratch: Path) -> None:
    edit(scratch / GPU, "name: H100-SXM-80GB", "name: H200-SXM-141GB")

    code, message, _ = refused(scratch)

    assert code == "catalog/misplaced"
    assert "`name: H100-SXM-80GB`" in message


@pytest.mark.parametrize("name", ["../../secret", "..", "/etc/passwd", "gpus/../../secret", "secret\0", "", " "])
def test_no_name_leads_out_of_the_catalog(scratch: Path, name: str) -> None:
    (scratch.parent / "secret.yaml").write_text((scratch / GPU).read_text())
    catalog = Catalog.open(scratch)

    for look_up in (catalog.gpu, catalog.model, catalog.offers, catalog.engine):
        with pytest.raises(UnknownName):
            look_up(name)


def test_folders_and_special_files_are_no_entries(scratch: Path) -> None:
    (scratch / "gpus/folder.yaml").mkdir()
    (scratch / "gpus/zero.yaml").symlink_to("/dev/zero")
    (scratch / "gpus/.hidden.yaml").write_text("name: x\n")

    assert Catalog.open(scratch).gpu_names() == ("H100-SXM-80GB",)


def test_tables_that_are_not_there_are_empty(tmp_path: Path) -> None:
    (tmp_path / "catalog.yaml").write_text('catalog: 1\nnewest_price_date: "2026-07-30"\nstale_after_days: 180\n')
    catalog = Catalog.open(tmp_path)

    assert (catalog.gpu_names(), catalog.model_names(), catalog.providers(), catalog.engine_names()) == ((), (), (), ())
    assert catalog.commitment_ratio("aws", "p5.48xlarge", "1y") is None
    assert catalog.regions("aws") == {}
    assert catalog.aliases.gpus == {}


def test_a_file_that_cannot_be_read_is_a_diagnostic(scratch: Path) -> None:
    catalog = Catalog.open(scratch)
    assert catalog.gpu_names()
    (scratch / GPU).unlink()
    with pytest.raises(DiagnosticError, match="cannot read"):
        catalog.gpu("H100-SXM-80GB")


def test_a_folder_without_an_index_is_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="is no catalog"):
        Catalog.open(tmp_path)
    with pytest.raises(DiagnosticError, match="is no catalog"):
        Catalog.open(tmp_path / "missing")


def test_bad_memory_constants_name_the_file(scratch: Path) -> None:
    edit(scratch / "engines/vllm.yaml", "fraction_of: total", "fraction_off: total")
    with pytest.raises(DiagnosticError) as caught:
        Catalog.open(scratch).engine("vllm", "0.4")

    assert "vllm.yaml" in str(caught.value)
    assert "fraction_off" in str(caught.value)


def test_the_nearest_catalog_upward_is_found(scratch: Path, tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "catalog").mkdir()

    assert find_catalog(inner) == scratch
    assert find_catalog(tmp_path) == scratch


def test_no_catalog_upward() -> None:
    assert find_catalog(Path("/nowhere/at/all")) is None
