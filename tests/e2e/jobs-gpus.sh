#!/usr/bin/env bash
# What of a node's GPUs and InfiniBand a job has: `mlenv preflight --nccl` by ssh against stand-ins of
# libcuda and libnccl that lie in the image (an all-reduce over TCP between the nodes' containers), and
# `--rdma`, whose devices are those of each node and not of the machine where the job is started. With
# MLENV_TEST_LONG=1 also sums that are wrong, a single node, what else may be absent, and the words of it.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc jq cc python3
[ -x "${MLENV%/*}/mlenv-gpu-probe" ] || skip "mlenv-gpu-probe is not built (MLENV_GPU_PROBE=OFF)"
need_node_agent

small_tree
mkdir -p "$work/recipes/driver"
cc -Wall -Wextra -Werror -O1 -shared -fPIC -o "$work/recipes/driver/libcuda.so.1" "$root/tests/support/standin_cuda.c"
cc -Wall -Wextra -Werror -O1 -shared -fPIC -o "$work/recipes/driver/libnccl.so.2" "$root/tests/support/standin_nccl.c"
mkdir "$work/recipes/cuda"
cp "$work/recipes/driver/libcuda.so.1" "$work/recipes/cuda/"
# image NAME FOLDER VARIABLES: with the libraries of that folder.
image() {
  printf 'name: %s\nbase: debian:bookworm\npython: "3.11"\nfiles: {%s: /opt/driver}\nenv: {LD_LIBRARY_PATH: /opt/driver%s}\n' "$1" "$2" "$3" >"$work/recipes/$1.yaml"
  build_digest "$work/recipes/$1.yaml" >/dev/null
}
image gpus driver ', STANDIN_GPUS: "3"'
image sick driver ', STANDIN_NCCL: fail'
image none driver ', STANDIN_MODE: none'
absent=(none)
if [ "$MLENV_TEST_LONG" = 1 ]; then
  image wrong driver ', STANDIN_NCCL: wrong'
  image bare cuda ''
  absent=(none small bare)
fi
nodes_up 3
nodes_have_small
with_ssh
mkdir -p "$work/project"
cd "$work/project"

found() { jq -r "$1" "$work/out"; }
fits_schema() { equal "schema" mlenv.preflight/1 "$(python3 "$root/tests/schema/check.py" <"$work/out")"; }
# preflight STATUS IMAGE: over two nodes, with NCCL; the answer is in `out`.
preflight() {
  ends_with "$1" on_head "$MLENV" --json preflight --hosts node1,node2 --nodes 2 --nccl "$2"
  fits_schema
}

note "an all-reduce over the GPUs of both nodes, in the image"
preflight 0 gpus
equal "of all GPUs" '[6,"2.28.3","Socket",false]' "$(found '.nccl_all_reduce | [.gpus, .version, .network, .failed] | tojson')"
equal "measured" true "$(found '.nccl_all_reduce | .seconds > 0 and .bus_bits_per_second > 0')"
equal "bus bandwidth of six" true "$(found '.nccl_all_reduce | .bus_bits_per_second / (.bytes * 8 / .seconds) | . > 1.66 and . < 1.67')"
if [ "$MLENV_TEST_LONG" = 1 ]; then
  ends_with 0 on_head "$MLENV" preflight --hosts node1,node2 --nodes 2 --nccl gpus
  grep -qE '^all-reduce, NCCL: [0-9]+ MiB on each of 6 GPUs in .* on the bus, by Socket.*, NCCL 2\.28\.3$' "$work/out" || fail "not told: $(cat "$work/out")"
  ends_with 0 on_head "$MLENV" --json preflight --hosts node1 --nodes 1 --nccl gpus
  fits_schema
  equal "of one node" '[3,false]' "$(found '.nccl_all_reduce | [.gpus, .failed] | tojson')"
fi

note "one that fails, or whose sums are wrong"
preflight 3 sick
equal "findings" 'broken nccl' "$(found '[.findings[] | "\(.standing) \(.kind)"] | join(", ")')"
found '.findings[0].text' >"$work/text"
grep -qE 'node[12]: NCCL: ncclCommInitRank: unhandled system error \(2\)' "$work/text" || fail "not told: $(cat "$work/text")"
if [ "$MLENV_TEST_LONG" = 1 ]; then
  preflight 3 wrong
  found .nccl >"$work/text"
  grep -q 'the sum on rank' "$work/text" || fail "not told: $(cat "$work/text")"
fi

note "nothing to measure: no GPU, no driver, no NCCL, engine local"
for name in "${absent[@]}"; do
  preflight 0 "$name"
  equal "of $name" '[null,false]' "$(found '.nccl_all_reduce | [.seconds, .failed] | tojson')"
  found .nccl >"$work/text"
  case $name in
    none) grep -q '^not measured: node[12]: the driver has no GPU' "$work/text" ;;
    small) grep -q '^not measured: node[12]: .*libcuda' "$work/text" ;;
    bare) grep -q '^not measured: node[12]: NCCL: .*libnccl' "$work/text" ;;
  esac || fail "$name: $(cat "$work/text")"
done
status=0 # between nodes that share two busy processors links may seem slow
as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" --json preflight --nodes 2 --nccl gpus >"$work/out" 2>"$work/err" || status=$?
[ "$status" = 0 ] || [ "$(found .verdict)" = slow ] || fail "status $status: $(cat "$work/err")"
found .nccl | grep -q "share this machine's GPUs" || fail "$(found .nccl)"
failing_with usage on_head "$MLENV" --json preflight --hosts node1,node2 --nodes 2 --nccl
nothing_left() { [ -z "$(on "$1" sh -c 'pgrep -af "[m]lenv-node|[g]pu-probe" || true')" ]; }
for node in node1 node2; do wait_until 20 nothing_left "$node"; done

note "InfiniBand devices are each node's own"
# A /dev for that node alone, with devices for which no driver is loaded.
# shellcheck disable=SC2016  # for that shell
with_rdma() {
  on "$1" sh -c 'mkdir -p /tmp/dev && mount -t tmpfs -o mode=755 devices /tmp/dev && cd /dev &&
    cp -a null zero full random urandom tty console ptmx fd stdin stdout stderr fuse net /tmp/dev/ 2>/dev/null
    cd / && for one in pts shm mqueue; do mkdir /tmp/dev/$one && mount --rbind /dev/$one /tmp/dev/$one 2>/dev/null || :; done
    mkdir /tmp/dev/infiniband && mknod /tmp/dev/infiniband/uverbs0 c 231 192 && mount --move /tmp/dev /dev'
}
with_rdma node1
with_rdma node2
# shellcheck disable=SC2016  # for that shell
job=("$MLENV" run --nodes 2 --rdma small -- sh -c 'ls /dev/infiniband; echo locks $(ulimit -l)')
# Root may raise the limit, where it has that right.
most=$(on node1 sh -c 'ulimit -H -l unlimited 2>/dev/null; ulimit -H -l')
ends_with 0 on_head "${job[@]:0:2}" --hosts node1,node2 "${job[@]:2}"
equal "in each rank" "0: locks $most 0: uverbs0 1: locks $most 1: uverbs0" "$(sort "$work/out" | tr '\n' ' ' | sed 's/ $//')"
ends_with 125 on_head "${job[@]:0:2}" --hosts node1,node3 "${job[@]:2}"
grep -q 'no InfiniBand or RoCE device' "$work/err" || fail "not told: $(cat "$work/err")"
grep -q 'node3' "$work/err" || fail "no node: $(cat "$work/err")"
