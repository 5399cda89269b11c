#!/bin/bash
# Uploads that break: the registry is killed within one and comes back; then mlenv itself is killed.
set -euo pipefail
. "$(dirname "$0")/../support/registry.sh"
need docker-registry skopeo
export MLENV_STORE=$work/store
start_registry
port=${registry##*:}

random_layer "$work/l.tar" 300000000
skopeo copy -q "tarball:$work/l.tar" "oci:$work/oci:v1"
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$registry/source:v1"
"$MLENV" pull "$registry/source:v1"
wanted=$(skopeo inspect --raw --tls-verify=false "docker://$registry/source:v1" | sha256sum)
rm -rf "$work/data"

# Waits until the registry has some of the upload on its disk.
under_way() {
  for _ in $(seq 400); do
    find "$work/data" -path '*_uploads*' -name data -size +20M 2>/dev/null | grep -q . && return
    pause 0.02
  done
  fail "no upload seen"
}
verify() {
  found=$(skopeo inspect --raw --tls-verify=false "docker://$registry/target:$1" | sha256sum)
  [ "$wanted" = "$found" ] || fail "manifests differ"
  rm -rf "$work/dir"
  skopeo copy -q --src-tls-verify=false "docker://$registry/target:$1" "dir:$work/dir"
}

"$MLENV" tag "$registry/source:v1" "$registry/target:v1"
"$MLENV" push "$registry/target:v1" &
push=$!
under_way
stop_registry KILL
pause 0.5
start_registry "$port"
wait "$push" || fail "the push did not outlive the registry's restart"
verify v1

rm -rf "$work/data"
"$MLENV" tag "$registry/source:v1" "$registry/target:v2"
"$MLENV" push "$registry/target:v2" &
push=$!
under_way
kill -KILL "$push"
wait "$push" 2>/dev/null || true
"$MLENV" push "$registry/target:v2"
verify v2

# A pull that is killed, too.
export MLENV_STORE=$work/store2
"$MLENV" pull "$registry/target:v2" &
pull=$!
pause 0.15
kill -KILL "$pull" 2>/dev/null || true
wait "$pull" 2>/dev/null || true
"$MLENV" pull "$registry/target:v2"
"$MLENV" push "$registry/target:v2"
