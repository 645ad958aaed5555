"""The catalog as a whole: digest, laziness, calibration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from planner.catalog import Catalog


def test_the_digest_depends_on_every_file_and_its_path(scratch: Path) -> None:
    first = Catalog.open(scratch).digest()
    assert first.startswith("sha256:")
    assert first == Catalog.open(scratch).digest()

    path = scratch / "models/openai/gpt-oss-20b.yaml"
    path.write_text(path.read_text() + "# note\n")
    second = Catalog.open(scratch).digest()
    path.rename(path.with_name("gpt-oss-21b.yaml"))

    assert len({first, second, Catalog.open(scratch).digest()}) == 3


def test_the_digest_covers_all_yaml_files(shipped: Catalog) -> None:
    on_disk = {p.relative_to(shipped.root).as_posix() for p in shipped.root.rglob("*.yaml")}

    assert {f"{name}.yaml" for name in shipped.files()} == on_disk


def test_only_what_is_asked_for_is_read(scratch: Path) -> None:
    (scratch / "offers/acme.yaml").write_text("broken: [\n")
    (scratch / "models/openai/gpt-oss-20b.yaml").write_text("broken: [\n")
    catalog = Catalog.open(scratch)

    assert catalog.gpu("h100-sxm").name == "H100-SXM-80GB"
    assert catalog.model_names() == ("openai/gpt-oss-20b",)
    assert catalog.providers() == ("acme",)


def test_default_calibration_is_data(shipped: Catalog) -> None:
    assert dict(shipped.calibration())


def test_importing_the_catalog_loads_no_numerics() -> None:
    program = "import sys, planner.catalog, planner.cli.catalog; print([m for m in ('numpy', 'scipy', 'pyomo') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
