#!/usr/bin/env bash
# Check the spec: mistakes become annotations beside its lines, and the step summary has them with the lines.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"

flags=(--fail-on "$INPUT_FAIL_ON")
[ -z "$INPUT_CATALOG" ] || flags+=(--catalog "$INPUT_CATALOG")

code=0
planner check "${flags[@]}" --format github -- "$INPUT_SPEC" || code=$?
if [ "$code" -ne 0 ]; then
  {
    printf '### The spec cannot be planned\n\n'
    # Indented lines are a code block that no text inside can end.
    planner check "${flags[@]}" -- "$INPUT_SPEC" 2>&1 | sed 's/^/    /' | at_most "$most_summary_bytes" || true
  } >> "$GITHUB_STEP_SUMMARY"
fi
exit "$code"
