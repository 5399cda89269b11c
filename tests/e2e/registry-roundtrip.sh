#!/bin/bash
# Pull what skopeo pushed, push it elsewhere: the same bytes, nothing sent twice.
set -euo pipefail
. "$(dirname "$0")/../support/registry.sh"
need docker-registry skopeo
export MLENV_STORE=$work/store
start_registry

random_layer "$work/l.tar" 20000000
skopeo copy -q "tarball:$work/l.tar" "oci:$work/oci:v1"
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$registry/team/source:v1"
wanted=$(skopeo inspect --raw --tls-verify=false "docker://$registry/team/source:v1" | sha256sum)

"$MLENV" pull "$registry/team/source:v1"
"$MLENV" tag "$registry/team/source:v1" "$registry/other/target:v2"
"$MLENV" push "$registry/other/target:v2"
found=$(skopeo inspect --raw --tls-verify=false "docker://$registry/other/target:v2" | sha256sum)
[ "$wanted" = "$found" ] || fail "manifests differ: $wanted $found"
skopeo copy -q --src-tls-verify=false "docker://$registry/other/target:v2" "dir:$work/dir"
(cd "$work/dir" && for blob in $(ls | grep -E '^[0-9a-f]{64}$'); do
  echo "$blob  $blob" | sha256sum --quiet -c
done)

# What is there is neither sent nor fetched again.
posts=$(requests POST) gets=$(grep -c '"GET /v2/.*/blobs/' "$work/registry.log")
"$MLENV" push "$registry/other/target:v2"
"$MLENV" pull "$registry/other/target:v2"
[ "$(requests POST)" = "$posts" ] || fail "the second push sent a blob"
[ "$(grep -c '"GET /v2/.*/blobs/' "$work/registry.log")" = "$gets" ] || fail "pulled a blob twice"

if "$MLENV" pull "$registry/team/none:v1" 2>"$work/err"; then fail "pulled what is not there"; fi
grep -q 'no image' "$work/err" || fail "unclear: $(cat "$work/err")"
