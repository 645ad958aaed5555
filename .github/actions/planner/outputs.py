"""Print the outputs of the action, one `name=value` a line, from the JSON of `planner diff`, or of the plan of a new spec."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def usd(amount: float | None) -> str:
    """Return dollars with cents; nothing where there is no plan."""
    return "" if amount is None else f"{amount:.2f}"


def main() -> None:
    found: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    diff = {"changed": True, "new": found["objective"]} if "objective" in found else found
    print(f"changed={str(bool(diff['changed'])).lower()}")
    print(f"monthly-cost={usd((diff.get('new') or {}).get('usd_per_month'))}")
    print(f"monthly-delta={usd(diff.get('usd_per_month_delta'))}")


if __name__ == "__main__":
    main()
