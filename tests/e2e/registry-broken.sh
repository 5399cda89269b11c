#!/usr/bin/env bash
# Transfers that break: the registry is killed within an upload and comes back; then mlenv itself is
# killed within a push and within a pull.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/registry.sh
. "$root/tests/support/registry.sh"
need skopeo
logged_registry ""

random_image "$work/oci" 150000000
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$registry/source:v1"
"$MLENV" pull "$registry/source:v1"
wanted=$(raw_digest source:v1)

# Blobs that the registry has by whatever name would not be sent.
forget() {
  rm -rf "$work/registry"
  "$MLENV" tag "$registry/source:v1" "$registry/target:$1"
}
under_way() {
  find "$work/registry" -path '*/_uploads/*' -name data -size +20M 2>/dev/null | grep -q .
}
arrived() {
  equal "manifest of $1" "$wanted" "$(raw_digest "target:$1")"
  skopeo copy -q --src-tls-verify=false "docker://$registry/target:$1" "dir:$work/dir"
  find "$work/dir" -regextype egrep -regex '.*/[0-9a-f]{64}' -printf '%f  %p\n' | sha256sum --quiet -c
  rm -r "$work/dir"
}

note "the registry restarts within an upload"
forget v1
start "$work/push.log" "$MLENV" push "$registry/target:v1"
push=${started[-1]}
wait_until 60 under_way
kill_registry
logged_registry "${registry##*:}"
wait "$push" || fail "the push did not outlive it: $(cat "$work/push.log")"
arrived v1

note "push is killed"
forget v2
start "$work/push.log" "$MLENV" push "$registry/target:v2"
push=${started[-1]}
wait_until 60 under_way
kill -KILL "$push"
"$MLENV" push "$registry/target:v2"
arrived v2

note "pull is killed"
export MLENV_STORE=$work/store2
start "$work/pull.log" "$MLENV" pull "$registry/target:v2"
pull=${started[-1]}
part_there() { find "$work/store2" -type f -size +10M | grep -q .; }
wait_until 60 part_there
kill -KILL "$pull" 2>/dev/null || true
verify_store
"$MLENV" pull "$registry/target:v2"
verify_store
