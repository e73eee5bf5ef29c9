#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A job of which a rank is killed, and the next job on the same files.
#
#   killed.sh PROGRAM RUN_OPTION...     PROGRAM is cases_limit; options: those of run.sh
set -euo pipefail

program=$1
shift
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run()
{
    "$here/run.sh" --work "$work" "${options[@]}" -- "$program" "$1"
}

options=("$@")
if run R40_killed >"$work/out" 2>&1; then
    cat "$work/out" >&2
    echo "killed.sh: the job was not killed" >&2
    exit 1
fi
grep -q 'signal 9' "$work/out" || { cat "$work/out" >&2; exit 1; }
rm "$work/out"
run R40_after
left=$(find "$work" -maxdepth 1 -type f)
[[ -z $left ]] || { echo "killed.sh: left behind: $left" >&2; exit 1; }
