#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# hipio gets out of the way: a program of host memory behaves as without it, no GPU runtime comes
# into the process, and when hipio can't serve, one line says why.
#
#   aside.sh TEST PROGRAM RUN_OPTION...     what run.sh needs: --build, --mpirun, --romio
#
#   quiet     hipio is loaded and healthy: no word, no GPU runtime
#   proof     its proof of ROMIO's layout fails: it steps aside, one line for all ranks
#   unloaded  hipio is not there
#   no_romio  ROMIO is excluded: files open with what is left
set -euo pipefail

name=$1 program=$2
shift 2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "aside.$name: $*" >&2
    echo "--- stdout" >&2
    cat "$work/out" >&2
    echo "--- stderr" >&2
    cat "$work/err" >&2
    exit 1
}

# run OPTION... runs the program on 4 ranks; it must be right.
run()
{
    "$here/run.sh" "${options[@]}" --gpu rocm5 --ranks 4 --deadline 60 "$@" -- \
        "$program" mca_io_hipio.so libamdhip64 libcuda libnvidia >"$work/out" 2>"$work/err" ||
        fail "the program failed"
    grep -q '^host_only: all right$' "$work/out" || fail "the program did not say that all is right"
    for library in libamdhip64 libcuda libnvidia; do
        grep -q "^$library: not there$" "$work/out" || fail "$library is in the process"
    done
}

# said N: hipio wrote N lines.
said()
{
    local lines
    lines=$(grep -c '^hipio' "$work/err" || true)
    [[ $lines -eq $1 ]] || fail "hipio wrote $lines lines, right is $1"
}

there()
{
    grep -q "^mca_io_hipio.so: $1$" "$work/out" || fail "mca_io_hipio.so is not '$1'"
}

options=("$@")
case $name in
quiet)
    run --io hipio
    there 'there'
    said 0
    ;;
proof)
    run --io hipio --mca 'io_hipio_romio_layout none'
    there 'there'
    said 1
    grep -q 'io_hipio_romio_layout' "$work/err" || fail "the line does not say why"
    ;;
unloaded)
    run --io default
    there 'not there'
    said 0
    run --io romio
    there 'not there'
    said 0
    ;;
no_romio)
    run --io hipio --mca 'io ^romio321'
    ;;
*)
    echo "aside.sh: no test '$name'" >&2
    exit 2
    ;;
esac
