#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# hipio-info says what is so: values and where they came from, a file and a folder, and errors.
#
#   info_test.sh PROGRAM [WORDS]      WORDS: to be found, and then paths of GPU memory too
set -euo pipefail

info=$1 words=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "info_test: $*" >&2
    cat "$work/out" >&2
    exit 1
}

says()
{
    grep -qE "$1" "$work/out" || fail "it does not say: $1"
}

head -c 100000 /dev/zero >"$work/file"
HIPIO_CHUNK_SIZE=64K HIPIO_LOG=none "$info" --bytes 1M "$work/file" "$work" >"$work/out" ||
    fail "it failed"
says '^hipio [0-9]+\.[0-9]+\.[0-9]+$'
says '^  chunk_size +64K +environment +each file '
says '^  lanes +0 +default +each file '
says '^  log +none +environment +process '
says '^  (hip|cuda): '
says 'file system: [a-z0-9]+, (local|shared)'
says 'a read of 100000 bytes'
says 'host memory: hostmem, 1 lane, in place \(nothing is staged\), pieces of at most [0-9]+ bytes'
grep -q ' 0 x 0 \| of 0 bytes' "$work/out" && fail "it tells of chunks that there are none of"
if [[ -n $words ]]; then
    says "$words"
    says '^    1: .'
    says 'hip memory: bounce, .* staging chunks? of 65536 bytes'
fi
[[ $(stat -c %s "$work/file") -eq 100000 ]] || fail "it changed the file"
[[ $(find "$work" -type f | wc -l) -eq 2 ]] || fail "it left a file behind"

HIPIO_FASTPATH=force HIPIO_FALLBACK=force "$info" "$work/file" >"$work/out" || fail "it failed"
says 'host memory: refused by the settings'

"$info" "$work/none" >"$work/out" 2>&1 && fail "a file that is not there is no error"
says 'hipio-info: .*/none: No such file'
# refused WORDS ARGUMENT...: an error that says so, and nothing else.
refused()
{
    local words=$1 code=0
    shift
    "$info" "$@" >"$work/out" 2>&1 || code=$?
    [[ $code -eq 2 ]] || fail "$*: ended with $code, not 2"
    says "^hipio-info: .*$words"
    [[ $(wc -l <"$work/out") -le 2 ]] || fail "$*: it says more than what is wrong"
}
refused '--bytes takes .*, not "1x"' --bytes 1x "$work/file"
refused '--bytes takes .*, not "zz"' --bytes zz
refused '--bytes takes .*, not "0"' --bytes 0 "$work/file"
refused '--bytes takes .*, not ""' --bytes "" "$work/file"
refused '--bytes takes .*, not "-5"' --bytes -5 "$work/file"
refused '--bytes takes .*, not "16777216T"' --bytes 16777216T
refused '--bytes needs a number' --bytes
refused 'there is no option "--byte"' --byte 5
"$info" "$work/file" --bytes 1K >"$work/out" || fail "an option behind a file is not taken"
says 'a read of 1024 bytes'
"$info" --version >"$work/out" || fail "no version"
says '^hipio [0-9]'
