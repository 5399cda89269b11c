#!/usr/bin/env bash
# pytorch-cuda: builds in a reasonable number of layers, computes and trains on the processor, and
# imports as quickly from its many layers as from one.
# first
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq

free=$(df --output=avail -B1M "$work" | tail -n 1)
# The store grows to 8.7 GB, and 3 GB of wheels may have to be fetched.
[ "$free" -gt 13000 ] || skip "needs 13 GB of disk, there are $free MB"
path=$(recipe pytorch-cuda)
image=$(build_digest "$path")
note "built $image"

"$MLENV" --json inspect pytorch-cuda >"$work/inspect.json"
layers=$(jq '.layers | length' "$work/inspect.json")
note "$layers layers"
[ "$layers" -le 100 ] || fail "$layers layers are too many"

equal "torch.ones(2) @ torch.ones(2)" 2.0 "$("$MLENV" run pytorch-cuda -- python -c \
  'import torch; print((torch.ones(2) @ torch.ones(2)).item())')"
cd "$root/examples"
"$MLENV" run pytorch-cuda -- python train-torch.py | tail -n 1 | tee "$work/out"
grep -q accuracy "$work/out" || fail "no accuracy"

note "what its wheels hold code for"
sed 's/^name: .*/name: gpus/' "$path" >"$work/gpus.yaml"
echo 'gpus: [sm_80, sm_89, sm_90]' >>"$work/gpus.yaml"
cp "${path%.yaml}.lock" "$work/gpus.lock"
"$MLENV" lock "$work/gpus.yaml" >/dev/null
torch=$(sed -n 's/^  { name = "torch", .*sha256 = "\([0-9a-f]*\)".*/\1/p' "$work/gpus.lock")
code=$(cat "$XDG_CACHE_HOME/mlenv/device-code/$torch")
note "torch: $code"
for known in sm_90 $(sed -n 's/^architectures = //p' "$work/gpus.lock" | tr -d '[],"'); do
  [[ " $code " == *" $known "* ]] || fail "the lock says $known, the wheel holds $code"
done

verify_store
[ "$MLENV_TEST_LONG" = 1 ] || exit 0

# What importing takes, on a quiet machine: the same overlay by hand, once with all layers and once with all in
# one (hard links).
need_root
mkdir "$work/short" "$work/one" "$work/upper" "$work/scratch" "$work/root"
number=0
lower=
while IFS= read -r diff_id; do
  tree=$MLENV_STORE/trees/${diff_id#sha256:}/fs
  [ -d "$tree" ] || fail "no unpacked layer at $tree"
  ln -s "$tree" "$work/short/$number"
  lower=$number${lower:+:$lower}
  number=$((number + 1))
done < <(jq -r '.layers[].diff_id' "$work/inspect.json")
as_root python3 "$root/tests/support/merge_trees.py" "$work/one" "$work"/short/*
cat >"$work/import.sh" <<'IMPORT'
set -eu
cd "$1"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$3/upper,workdir=$3/scratch" "$3/root"
mount --bind /dev "$3/root/dev"
mount -t proc proc "$3/root/proc"
exec chroot "$3/root" /opt/venv/bin/python -c 'import time
began = time.perf_counter()
import torch
print(time.perf_counter() - began)'
IMPORT
import() { as_root env -i PATH="$PATH" unshare --mount sh "$work/import.sh" "$@"; }
for _ in 1 2 3 4 5 6 7; do
  import "$work/short" "$lower" "$work" >>"$work/many.times"
  import "$work" one "$work" >>"$work/one.times"
done
# The quickest of each: the rest is what else the machine does.
many=$(sort -g "$work/many.times" | head -n 1)
one=$(sort -g "$work/one.times" | head -n 1)
note "import torch: $many s from $number layers, $one s from one"
awk -v many="$many" -v one="$one" 'BEGIN { exit !(many <= 1.1 * one) }' ||
  fail "importing takes more than 1.1 times as long"
