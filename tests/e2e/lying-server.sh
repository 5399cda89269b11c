#!/usr/bin/env bash
# An index and a registry that cut, corrupt, refuse and stall: what can be mended by asking again is,
# the rest is an error that names the digest, and nothing wrong gets into the store. Each lie of the index or of the
# registry; each of both with MLENV_TEST_LONG=1.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need curl python3

# liar NAME UPSTREAM: a server that passes on what UPSTREAM says; sets $liar to its address. `lie MODE`
# (honest cut-once error-once wrong-once cut wrong error) says how it treats the files of interest.
liar() {
  local port
  port=$(free_port)
  start "$work/$1.log" python3 "$root/tests/support/lying_server.py" "$port" "$2"
  liar=127.0.0.1:$port
  wait_until 20 curl --noproxy '*' -fs "http://$liar/.lie/honest"
}
lie() { curl --noproxy '*' -fsS "http://$liar/.lie/$1" >/dev/null; }

fetched=$XDG_CACHE_HOME/wheels
mkdir -p "$fetched"
pip=(python3 -m pip download --quiet --no-deps --dest "$fetched" --only-binary=:all:
  --python-version 3.11 --platform manylinux2014_x86_64)
for package in einops regex; do
  compgen -G "$fetched/$package-*" >/dev/null || "${pip[@]}" "$package"
done
python3 -c 'import pathlib, sys
sys.path.insert(0, sys.argv[1])
from index import write_index
write_index(sorted(pathlib.Path(sys.argv[2]).glob("*.whl")), pathlib.Path(sys.argv[3]))' \
  "$root/tests/bench" "$fetched" "$work/index"
liar index "$work/index"
export UV_DEFAULT_INDEX=http://$liar/simple
unset UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS PIP_FIND_LINKS

# Without bytecode and unpacking, so that the many builds below are quick.
path=$work/small.yaml
small_recipe "$path" einops regex
echo 'bytecode: false' >>"$path"
base_store "$work/begin"
again() { # with the store as it was, and empty caches
  drop "$MLENV_STORE" "$work/cache"
  mkdir -p "$MLENV_STORE"
  cp -a --reflink=auto "$work/begin/." "$MLENV_STORE/"
  mkdir -p "$work/cache/mlenv"
  if [ -d "$shared_cache/mlenv/uv" ]; then cp -r "$shared_cache/mlenv/uv" "$work/cache/mlenv/"; fi
}
shared_cache=$XDG_CACHE_HOME
export XDG_CACHE_HOME=$work/cache
again
image=$(build_digest "$path" --no-unpack)
note "honest: $image"

passing=(error-once wrong-once)
lasting=(wrong error)
if [ "$MLENV_TEST_LONG" = 1 ]; then
  passing+=(cut-once)
  lasting+=(cut)
fi
for mode in "${passing[@]}"; do
  again
  lie "$mode"
  equal "digest in spite of $mode" "$image" "$(build_digest "$path" --no-unpack --locked)"
  verify_store
  note "$mode: the same digest"
done
for mode in "${lasting[@]}"; do
  again
  lie "$mode"
  status=0
  "$MLENV" build "$path" --no-unpack --locked >"$work/out" 2>"$work/err" || status=$?
  equal "exit status with $mode" 1 "$status"
  if [ "$mode" = wrong ]; then
    grep -q 'sha256:' "$work/err" || fail "no digest in: $(cat "$work/err")"
  fi
  verify_store
  lie honest
  equal "digest after $mode" "$image" "$(build_digest "$path" --no-unpack --locked)"
  verify_store
  note "$mode: refused, and then the same digest"
done

note "an index that moved: what is remembered of it no longer helps, asking does"
again
lie honest
"$MLENV" lock --upgrade "$path" >/dev/null
kill "${started[-1]}"
wait "${started[-1]}" 2>/dev/null || true
unset 'started[-1]'
liar index "$work/index"
export UV_DEFAULT_INDEX=http://$liar/simple
equal "digest from the other address" "$image" "$(build_digest "$path" --no-unpack --locked)"
verify_store

start_registry
"$MLENV" push small "$registry/small:v1" >/dev/null
liar liar "http://$registry"
passing=(cut-once wrong-once)
lasting=(cut)
if [ "$MLENV_TEST_LONG" = 1 ]; then
  passing+=(error-once)
  lasting+=(wrong)
fi
for mode in "${passing[@]}"; do
  lie "$mode"
  drop "$work/pulled"
  equal "digest pulled in spite of $mode" "$image" \
    "$(MLENV_STORE=$work/pulled "$MLENV" pull "$liar/small:v1" | tail -n 1)"
  verify_store "$work/pulled"
done
for mode in "${lasting[@]}"; do
  lie "$mode"
  drop "$work/pulled"
  status=0
  MLENV_STORE=$work/pulled "$MLENV" pull "$liar/small:v1" >"$work/out" 2>"$work/err" || status=$?
  equal "exit status of pull with $mode" 1 "$status"
  verify_store "$work/pulled"
  note "registry, $mode: refused"
done
