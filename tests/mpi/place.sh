#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs one MPI test program in a place of some kind: a file system that is mounted for it alone, or
# a narrow environment.
#
#   place.sh KIND RUN_OPTION... -- PROGRAM [ARGUMENT...]     options: those of run.sh
#
#   shm       a folder of /dev/shm (tmpfs)
#   ramfs     a file system without O_DIRECT
#   overlay   an overlay, as containers have it
#   loop      ext4 in a file (loop device)
#   loop-xfs  xfs in a file
#   fuse      ext4 in a file, by a process (fuse2fs)
#   bind      a folder that is mounted at another place
#   narrow    /tmp can't be written to, /dev/shm has 1 MiB, there is no home
#   nobody    the same for a user without rights
#
# Mounts are in a name space of their own and go with it. Ends as run.sh does; 77 where the kind
# can't be had here: no privileges, no program, no such file system.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

absent()
{
    echo "place.sh: $*" >&2
    exit 77
}

kind=$1
if [[ $kind != shm && ${PLACE_INSIDE:-} != yes ]]; then
    export PLACE_INSIDE=yes
    unshare --mount --propagation private true 2>/dev/null || absent "no mount name space to have"
    unshare --mount --propagation private "$(readlink -f "${BASH_SOURCE[0]}")" "$@"
    exit
fi
shift

scratch=$(mktemp -d)
chmod 755 "$scratch"
place=$scratch/place
mkdir "$place"
mounts=() # the last one first
trap 'cd /; umount ${mounts[@]+"${mounts[@]}"} 2>/dev/null || true; rm -rf "$scratch" "$place"' EXIT

# mounted WHAT-IS-MISSING-ELSE FOLDER OPTION...: mounts, until the end.
mounted()
{
    local missing=$1 folder=$2
    shift 2
    mount "$@" "$folder" 2>/dev/null || absent "no $missing"
    mounts=("$folder" "${mounts[@]}")
}

# image COMMAND...: a file system in a file.
image()
{
    command -v "$1" >/dev/null || absent "no $1"
    truncate -s 512M "$scratch/image"
    "$@" "$scratch/image" >/dev/null
}

narrow()
{
    mounted 'bind mount' /tmp --bind /tmp
    mount -o remount,ro,bind /tmp
    mounted tmpfs /dev/shm -t tmpfs -o size=1M,mode=1777 narrow
    mounted tmpfs "$place" -t tmpfs -o mode=1777 place
    unset HOME TMPDIR XDG_RUNTIME_DIR
}

as=()
case $kind in
shm)
    rmdir "$place"
    place=$(mktemp -d /dev/shm/hipio-XXXXXX) || absent "no /dev/shm"
    ;;
ramfs) mounted ramfs "$place" -t ramfs place ;;
overlay)
    mounted tmpfs "$scratch" -t tmpfs layers
    mkdir "$scratch"/{lower,upper,work,place}
    mounted overlay "$place" -t overlay \
        -o "lowerdir=$scratch/lower,upperdir=$scratch/upper,workdir=$scratch/work" place
    ;;
loop)
    image mkfs.ext4 -q
    mounted 'loop device' "$place" -o loop "$scratch/image"
    ;;
loop-xfs)
    image mkfs.xfs -q
    mounted 'loop device' "$place" -o loop "$scratch/image"
    ;;
fuse)
    command -v fuse2fs >/dev/null || absent "no fuse2fs"
    image mkfs.ext4 -q
    fuse2fs -o rw,fakeroot "$scratch/image" "$place" >/dev/null 2>&1 || absent "no FUSE"
    mounts=("$place")
    ;;
bind)
    mkdir "$scratch/source"
    mounted 'bind mount' "$place" --bind "$scratch/source"
    ;;
narrow) narrow ;;
nobody)
    command -v setpriv >/dev/null || absent "no setpriv"
    narrow
    as=(setpriv --reuid nobody --clear-groups)
    ;;
*)
    echo "place.sh: no kind '$kind'" >&2
    exit 2
    ;;
esac

code=0
${as[@]+"${as[@]}"} "$here/run.sh" --work "$place" "$@" || code=$?
exit "$code"
