#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs a command on simulated hosts: network namespaces with a bridge between them, each with a host
# name of its own. For Open MPI they are so many machines. Everything is made in namespaces of this
# process and goes with it.
#
#   hosts.sh N COMMAND...        N: how many hosts; the ranks are dealt to them in turn
#
# COMMAND is what starts mpirun, and finds its options in the environment. Ends with the command's
# exit code; 77 where namespaces are not permitted.
set -euo pipefail

hosts=$1
shift
if [[ -z ${HIPIO_TEST_INSIDE:-} ]]; then
    unshare --net --mount --uts --pid --fork --mount-proc true 2>/dev/null || exit 77
    HIPIO_TEST_INSIDE=1 exec unshare --net --mount --uts --pid --fork --mount-proc --kill-child \
        "$0" "$hosts" "$@"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# host I: a namespace that lives as long as its sleeping process.
host()
{
    unshare --net --uts sleep infinity &
    local process=$!
    echo "$process" >"$work/h$1"
    # The namespace is there once the process is another program.
    while [[ $(readlink "/proc/$process/exe") != */sleep ]]; do sleep 0.01; done
    ip link add "v$1" type veth peer name eth0 netns "$process"
    ip link set "v$1" master br0 up
    nsenter -t "$process" --net --uts sh -c "hostname h$1 && ip link set lo up &&
        ip link set eth0 up && ip addr add 10.77.0.$1/24 dev eth0"
    echo "10.77.0.$1 h$1" >>"$work/hosts"
}

{
    ip link add br0 type bridge && ip link set br0 up && ip link set lo up &&
        ip addr add 10.77.0.254/24 dev br0 && hostname h0
} 2>/dev/null || exit 77
echo "127.0.0.1 localhost" >"$work/hosts"
echo "10.77.0.254 h0" >>"$work/hosts"
list=''
for ((i = 1; i <= hosts; i++)); do
    host "$i"
    list+=${list:+,}h$i:1
done
mount --bind "$work/hosts" /etc/hosts || exit 77

# What Open MPI takes for ssh: agent HOST WORD...
cat >"$work/agent" <<END
#!/bin/sh
host=\$1
shift
exec nsenter -t "\$(cat "$work/\$host")" --net --uts sh -c "\$*"
END
chmod +x "$work/agent"

export OMPI_MCA_plm_rsh_agent=$work/agent OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_orte_default_hostfile=/dev/null OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
export OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 HIPIO_TEST_HOSTS=$list
"$@"
