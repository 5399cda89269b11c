#!/usr/bin/env bash
# A recipe's own Debian archive: it is what packages come from, and the image's apt uses it. The lock
# names no host, and says so when the recipe goes elsewhere.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need apt-get jq

base_tree
# shellcheck disable=SC2016  # for apt-get
archive=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(REPO_URI)' | awk '$2 == "bookworm" {print $3; exit}')
[[ $archive == http* ]] || skip "this machine's apt has no archive of bookworm on the network"
cat >"$work/own.yaml" <<RECIPE
name: own
base: debian:bookworm
python: "3.11"
sources:
  debian: ["$archive"]
RECIPE
note "build"
build_digest "$work/own.yaml" >/dev/null
grep -q '^sources = "[0-9a-f]\{64\}"$' "$work/own.lock" || fail "the lock does not say that there are sources"
host=${archive#*://}
if grep -qF "${host%%/*}" "$work/own.lock"; then fail "the lock names a host"; fi

"$MLENV" build "$work/own.yaml" --locked --output "oci:$work/own-oci" >/dev/null
reader_agrees own "$work/own-oci"
grep -q ' package sources$' "$work/found" || fail "no package sources"

note "in the image"
"$MLENV" run own -- cat /etc/apt/sources.list.d/mlenv.sources >"$work/found"
grep -qxF "URIs: $archive" "$work/found" || fail "other sources: $(cat "$work/found")"
"$MLENV" run own -- sh -c 'apt-get update -qq && apt-get install -qq -y hello >/dev/null && hello'

note "another archive is another image"
sed -i 's,/"],"],; t; s,"],/"],' "$work/own.yaml"
status=0
"$MLENV" build --locked "$work/own.yaml" 2>"$work/err" || status=$?
equal "exit status" 3 "$status"
grep -q 'package sources in the image' "$work/err" || fail "says: $(cat "$work/err")"
