#!/usr/bin/env bash
# Install the planner of this checkout into an environment of its own, and put its command on the path of later steps.
set -euo pipefail

home=$RUNNER_TEMP/planner
"python$INPUT_PYTHON_VERSION" -m venv "$home"
"$home/bin/pip" install --quiet "$GITHUB_ACTION_PATH/../../.."
echo "$home/bin" >> "$GITHUB_PATH"
