#!/usr/bin/env bash
# Pull what skopeo pushed, push it elsewhere: the same bytes, nothing sent or fetched twice.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/registry.sh
. "$root/tests/support/registry.sh"
need skopeo
logged_registry ""

random_image "$work/oci" 20000000
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$registry/team/source:v1"

note "pull, tag, push"
"$MLENV" pull "$registry/team/source:v1"
verify_store
"$MLENV" tag "$registry/team/source:v1" "$registry/other/target:v2"
"$MLENV" push "$registry/other/target:v2"
equal manifest "$(raw_digest team/source:v1)" "$(raw_digest other/target:v2)"
skopeo copy -q --src-tls-verify=false "docker://$registry/other/target:v2" "dir:$work/dir"
find "$work/dir" -regextype egrep -regex '.*/[0-9a-f]{64}' -printf '%f  %p\n' | sha256sum --quiet -c

note "again"
posts=$(requests 'POST /v2/')
gets=$(requests 'GET /v2/.*/blobs/')
"$MLENV" push "$registry/other/target:v2"
"$MLENV" pull "$registry/other/target:v2"
equal "blobs sent" "$posts" "$(requests 'POST /v2/')"
equal "blobs fetched" "$gets" "$(requests 'GET /v2/.*/blobs/')"

note "what is not there"
if "$MLENV" pull "$registry/team/none:v1" 2>"$work/err"; then fail "pulled what is not there"; fi
grep -q 'has no image' "$work/err" || fail "unclear: $(cat "$work/err")"
