#!/usr/bin/env bash
# Shared by the steps. Texts of users come in as variables and go out escaped, never as part of a script.

# shellcheck disable=SC2034  # used by the scripts that source this one
most_summary_bytes=1000000 # a step summary may have 1 MiB
# shellcheck disable=SC2034
most_comment_bytes=65000 # a comment may have 65,536 characters

# at_most BYTES: copy standard input, whole lines only, and say so where it is cut.
at_most() {
  LC_ALL=C awk -v most="$1" '
    { used += length($0) + 1 }
    used > most { print "\n_Cut here: there is more than fits._"; exit }
    { print }'
}

# annotate KIND TEXT: one workflow command, whatever the text holds.
annotate() {
  local text=${2//'%'/%25}
  text=${text//$'\r'/%0D}
  printf '%s\n' "::$1 title=planner::${text//$'\n'/%0A}"
}

# plainly COMMAND...: run it so that no line it prints is taken for a workflow command.
plainly() {
  local token code=0
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "::stop-commands::$token"
  "$@" 2>&1 || code=$?
  echo "::$token::"
  return "$code"
}

# fail TEXT: an error on the run, and the end of it.
fail() {
  annotate error "$1"
  exit 1
}
