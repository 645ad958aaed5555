#!/usr/bin/env bash
# Compare the plan of the spec with that of the base commit: outputs, step summary, and a file for a comment.
# A spec that the base does not have is planned alone.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"

if [ -z "$INPUT_BASE" ]; then
  annotate notice "no base to compare with: not a pull request, and no input \`base\`"
  exit 0
fi

commit_of() {
  git rev-parse --verify --quiet --end-of-options "$1^{commit}"
}

# A shallow checkout lacks the base.
commit=$(commit_of "$INPUT_BASE") ||
  { git fetch --quiet --no-tags --depth=1 --end-of-options origin "$INPUT_BASE" && commit=$(commit_of FETCH_HEAD); } ||
  fail "the base $INPUT_BASE is not in this checkout; check it out with fetch-depth: 0"

# is_in_base: whether the base has the spec, seen from the folder of the spec.
is_in_base() {
  local folder=.
  [ "${INPUT_SPEC%/*}" = "$INPUT_SPEC" ] || folder=${INPUT_SPEC%/*}/
  [ -n "$(git -C "$folder" ls-tree --name-only "$commit" -- "./${INPUT_SPEC##*/}")" ]
}

# plan_alone: the plan as Markdown, found again by a first line that is hidden, as comparisons have one.
plan_alone() {
  echo "<!-- planner diff $(printf '%s' "$INPUT_SPEC" | git hash-object --stdin | cut -c1-16) -->"
  printf '\nThe spec is new: this is all that it costs.\n\n'
  planner show --format markdown -- "$numbers"
}

flags=()
[ -z "$INPUT_CATALOG" ] || flags+=(--catalog "$INPUT_CATALOG")
[ -z "$INPUT_POLICIES" ] || flags+=(--policies "$INPUT_POLICIES")
report=$RUNNER_TEMP/planner-diff.md
numbers=$RUNNER_TEMP/planner-diff.json

rm -f "$report" "$numbers"
code=0
annotations=$RUNNER_TEMP/planner-diff.commands
if is_in_base; then
  command="diff"
  plainly planner diff --detailed-exitcode "${flags[@]}" --save "$numbers" --save "$report" \
    --format github --out "$annotations" -- "git:$commit" "$INPUT_SPEC" || code=$?
else
  command="solve"
  plainly planner solve "${flags[@]}" --out "$numbers" -- "$INPUT_SPEC" || code=$?
  [ ! -s "$numbers" ] || plan_alone > "$report"
  annotate notice "$INPUT_SPEC is new: the base has no plan to compare with" > "$annotations"
fi
if [ ! -s "$report" ] || [ ! -s "$numbers" ]; then
  annotate error "planner $command failed with exit code $code; see the log"
  exit "$((code == 0 ? 1 : code))"
fi

cat "$annotations" # every text in it is escaped
{
  python3 "${BASH_SOURCE[0]%/*}/outputs.py" "$numbers"
  echo "report=$report"
} >> "$GITHUB_OUTPUT"
at_most "$most_summary_bytes" < "$report" >> "$GITHUB_STEP_SUMMARY"
[ -z "$INPUT_COMMENT_FILE" ] || at_most "$most_comment_bytes" < "$report" > "$INPUT_COMMENT_FILE"

case $code in
  0 | 2) exit 0 ;; # the same plan, or another one
  3) annotate error "no fleet meets the spec; see the summary" ;;
  4) annotate error "the plan is not proven within the gap that the spec asks for; see the summary" ;;
  5) annotate error "a policy denies the plan; see the summary" ;;
esac
exit "$code"
