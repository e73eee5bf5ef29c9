#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs one MPI test program in a folder of its own and says why it ended.
#
#   run.sh [OPTION...] -- PROGRAM [ARGUMENT...]
#
#   --build FOLDER    the build tree: adio/mca_io_hipio.so, hipsim/rocmN/
#   --mpirun PROGRAM  the launcher
#   --romio FOLDER    folder of mca_io_romio321.so
#   --io WHICH        hipio: the driver is loaded; romio: plain ROMIO; default: what MPI chooses
#   --gpu WHICH       rocm5, rocm6, rocm7: hipsim posing as that; apu: memory that the CPU may
#                     touch (on rocm6); real: what the machine has; all these must be there.
#                     auto: what the machine has, if it has one; none
#   --ranks N         default 1
#   --deadline S      seconds for all of it; default 120
#   --mca "K V"       one more parameter of Open MPI; may be repeated
#   --preload LIBRARY into the program, not into the launcher
#   --work FOLDER     run there, and leave the folder alone afterwards
#
# Ends with the program's exit code; 124 when the deadline passed.
set -euo pipefail

build='' mpirun=mpirun romio='' io=hipio gpu=rocm5 ranks=1 deadline=120 work='' preload=''
mca=()
while [[ $# -gt 0 && $1 != -- ]]; do
    case $1 in
    --build) build=$2 ;;
    --mpirun) mpirun=$2 ;;
    --romio) romio=$2 ;;
    --io) io=$2 ;;
    --gpu) gpu=$2 ;;
    --ranks) ranks=$2 ;;
    --deadline) deadline=$2 ;;
    --mca) mca+=(--mca "${2%% *}" "${2#* }") ;;
    --preload) preload=$2 ;;
    --work) work=$2 ;;
    *) echo "run.sh: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
done
shift

if [[ $(id -u) -eq 0 ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if [[ -z $work ]]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
# Open MPI's own files die with the test's; two tests at once share the machine's few cores.
export TMPDIR=$work OMPI_MCA_mpi_yield_when_idle=1
: "${HIPIO_TEST_DEADLINE:=$((deadline / 2))}"
export HIPIO_TEST_DEADLINE

case $io in
hipio)
    [[ -f $build/adio/mca_io_hipio.so ]] || { echo "run.sh: no $build/adio/mca_io_hipio.so" >&2; exit 2; }
    mca+=(--mca mca_base_component_path "$build/adio:$romio")
    ;;
romio) mca+=(--mca io romio321) ;;
default) ;;
*) echo "run.sh: --io takes hipio, romio or default" >&2; exit 2 ;;
esac

case $gpu in
rocm5 | rocm6 | rocm7) pose=$gpu ;;
apu) pose=rocm6; export HIPSIM_APU=1 ;;
real | auto | none) pose='' ;;
*) echo "run.sh: --gpu takes rocm5, rocm6, rocm7, apu, real, auto or none" >&2; exit 2 ;;
esac
if [[ $gpu != none && $gpu != auto ]]; then
    export HIPIO_TEST_NEEDS_GPU=1
fi
if [[ -n $pose ]]; then
    export LD_LIBRARY_PATH=$build/hipsim/$pose${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

if [[ -n $preload ]]; then
    mca+=(-x LD_PRELOAD="$preload")
fi

# Simulated hosts (hosts.sh).
if [[ -n ${HIPIO_TEST_HOSTS:-} ]]; then
    mca+=(--host "$HIPIO_TEST_HOSTS" --map-by node)
fi

cd "$work" || exit 2
code=0
timeout --kill-after=10 "$deadline" \
    "$mpirun" --oversubscribe --bind-to none -n "$ranks" ${mca[@]+"${mca[@]}"} "$@" || code=$?
case $code in
0 | 77) ;;
124 | 137) echo "run.sh: $1 did not end within $deadline s (code $code)"; code=124 ;;
134) echo "run.sh: $1 was aborted (code $code)" ;;
139) echo "run.sh: $1 crashed (code $code)" ;;
97) echo "run.sh: a rank of $1 hung; see HANG above" ;;
99) echo "run.sh: $1 could not set itself up; see \"test:\" above" ;;
*) echo "run.sh: $1 ended with code $code" ;;
esac
exit $code
