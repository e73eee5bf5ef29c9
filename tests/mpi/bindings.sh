#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# R33: MPI-IO on GPU memory through the bindings of other languages, which have sizes of their own.
#
#   bindings.sh fortran|python LIBRARY MPIFORT COMMAND...
#
# LIBRARY: tests/support/gpu.h for them; COMMAND: starts an MPI program in the folder --work.
set -euo pipefail

language=$1 library=$2 mpifort=$3
shift 3
source=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Compiled, or found: what there is of the language, or 77.
case $language in
fortran)
    echo 'use mpi_f08; end' >"$work/try.f90"
    if ! "$mpifort" "$work/try.f90" -o "$work/try" 2>"$work/log"; then
        echo "bindings: no Fortran with mpi_f08 here: $(head -n 1 "$work/log")"
        exit 77
    fi
    "$mpifort" -Wall -Werror -J "$work" "$source/r33.f90" "$library" -Wl,-rpath,"$(dirname "$library")" \
        -o "$work/r33"
    program=("$work/r33")
    ;;
python)
    program=()
    for python in python3 /usr/bin/python3; do
        # As it will be run, for COMMAND changes what Python finds.
        if "$@" --work "$work" -- "$python" -c 'import mpi4py' >/dev/null 2>&1; then
            program=("$python" "$source/r33.py" "$library")
            break
        fi
    done
    if [[ ${#program[@]} -eq 0 ]]; then
        echo "bindings: no python3 with mpi4py here"
        exit 77
    fi
    ;;
*) echo "bindings: no such language: $language" >&2; exit 2 ;;
esac

truncate -s $((5 << 30)) "$work/r33.dat"
printf 'last of 5 GiB: 1' | dd of="$work/r33.dat" bs=16 seek=$(((5 << 30) / 16 - 1)) conv=notrunc status=none
"$@" --work "$work" -- "${program[@]}" | tee "$work/out"
[[ $(grep -o 'R33 right' "$work/out" | wc -l) -eq 2 ]] || { echo "bindings: not all ranks say so" >&2; exit 1; }
