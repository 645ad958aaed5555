"""The HTML report in a browser, where one is at hand; see Development in the README.

Needs node, a Chromium (PLANNER_BROWSER names another than the one on the path), and a folder with axe-core and
playwright-core, which PLANNER_BROWSER_MODULES names. PLANNER_BROWSER_SHOTS keeps pictures of the page and its print.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from report_pages import page_file

NODE = shutil.which("node")
BROWSER = os.environ.get("PLANNER_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "google-chrome"))), None
)
MODULES = os.environ.get("PLANNER_BROWSER_MODULES")
CHECKER = Path(__file__).with_name("check_page.mjs")

pytestmark = pytest.mark.skipif(
    not (NODE and BROWSER and MODULES), reason="needs node, Chromium and PLANNER_BROWSER_MODULES"
)


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """No error, no request, nothing wider than small and large windows or paper, no finding of axe, sorting by keyboard."""
    shots = os.environ.get("PLANNER_BROWSER_SHOTS")
    command = [
        str(NODE),
        str(CHECKER),
        str(MODULES),
        str(BROWSER),
        str(page_file(tmp_path)),
        *([shots] if shots else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)

    assert json.loads(done.stdout) == {
        "errors": [],
        "requests": [],
        "overflows": [],
        "violations": [],
        "sorted": True,
        "focused": "Skip to the plan",
        "printed": [],
    }
