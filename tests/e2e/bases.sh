#!/usr/bin/env bash
# An image as base: from a registry (an index, zstd layers), a folder and an archive; its layers as
# they are, Python where it has it, its settings; pinned by digest whatever its tag says later.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc skopeo umoci
need_root
start_registry
base_store

note "a base with Python below /usr/local and nothing in /usr/bin, in three layers"
printf 'name: base\nbase: debian:bookworm\npython: "3.11"\n' >"$work/base.yaml"
"$MLENV" build -q --no-unpack --output "oci:$work/layout" "$work/base.yaml" >/dev/null
as_root umoci unpack --image "$work/layout:latest" "$work/bundle"
files=$work/bundle/rootfs
as_root cp "$files/usr/bin/python3.11" "$files/usr/local/bin/"
as_root ln -s python3.11 "$files/usr/local/bin/python3"
as_root cp -r "$files/usr/lib/python3.11" "$files/usr/local/lib/"
as_root rm -r "$files/usr/bin/python3" "$files/usr/bin/python3.11" "$files/usr/lib/python3.11"
as_root install -d -m 1777 "$files/srv/spool"
printf '#!/bin/sh\necho "entry: $*"\nexec "$@"\n' | as_root tee "$files/entry" >/dev/null
as_root chmod 755 "$files/entry"
as_root umoci repack --image "$work/layout:v1" "$work/bundle"
as_root umoci config --image "$work/layout:v1" --clear config.env --clear config.cmd \
  --config.env PATH=/usr/local/bin:/usr/bin:/bin --config.env MODE=base --config.entrypoint /entry \
  --config.cmd python3 --config.workingdir /srv --config.user 1000:1000 --config.label vendor=us \
  --config.label org.opencontainers.image.version=9
as_root chown -R "$(id -u):$(id -g)" "$work/layout"
skopeo copy -q --dest-tls-verify=false --dest-compress-format zstd --dest-compress \
  "oci:$work/layout:v1" "docker://$registry/team/base:amd64"
digest=$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$registry/team/base:amd64")
size=$(skopeo inspect --raw --tls-verify=false "docker://$registry/team/base:amd64" | wc -c)
put_index() { # put_index DIGEST SIZE: as the tag v1
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' \
    "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"$1\",\"size\":$2,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}" \
    >"$work/index.json"
  curl --noproxy '*' -fsS -X PUT -H 'Content-Type: application/vnd.oci.image.index.v1+json' \
    --data-binary "@$work/index.json" "http://$registry/v2/team/base/manifests/v1"
}
put_index "$digest" "$size"

on_base() { # on_base NAME BASE: a recipe on it
  mkdir -p "$work/$1/src"
  echo 'import six, sys; print(six.__name__, sys.base_prefix, sys.prefix)' >"$work/$1/src/main.py"
  cat >"$work/$1/$1.yaml" <<RECIPE
name: $1
base: $2
packages: [six]
env: {OWN: "yes"}
files: {src: /srv/spool}
RECIPE
}
layers() { skopeo inspect "oci:$work/out-$1:latest" | python3 -c 'import json,sys
print(*json.load(sys.stdin)["Layers"][3:])'; }

note "from the registry"
on_base remote "$registry/team/base:v1"
image=$(build_digest --output "oci:$work/out-remote" "$work/remote/remote.yaml")
grep -q '^revision = 2$' "$work/remote/remote.lock" || fail "$(head "$work/remote/remote.lock")"
grep -q "^manifest = \"${digest#sha256:}\"$" "$work/remote/remote.lock" || fail "no digest"
grep -q '^interpreter = "/usr/local/bin/python3.11"$' "$work/remote/remote.lock" || fail "no interpreter"
grep -q 'tar+zstd' "$work/remote/remote.lock" || fail "no zstd"
equal "output" "six /usr/local /opt/venv" "$("$MLENV" run --no-project remote -- python /srv/spool/main.py)"
equal "the base's command" "entry: python3" "$("$MLENV" run --no-project remote </dev/null)"
equal "a folder of the base" '1777 yes base' \
  "$("$MLENV" run --no-project remote -- sh -c 'echo $(stat -c %a /srv/spool) $OWN $MODE')"
skopeo inspect --config "oci:$work/out-remote:latest" >"$work/config"
for part in '"User":"1000:1000"' '"WorkingDir":"/srv"' '"Entrypoint":["/entry"]' '"Cmd":["python3"]' \
  '"vendor":"us"' "\"org.opencontainers.image.base.digest\":\"$digest\"" 'PATH=/opt/venv/bin:/usr/local/bin'; do
  tr -d ' \n' <"$work/config" | grep -qF "$part" || fail "no $part in $(cat "$work/config")"
done
grep -q 'image.version' "$work/config" && fail "the base's own version is left"
equal "base layers" "$(skopeo inspect --raw --tls-verify=false "docker://$registry/team/base:amd64" |
  grep -oE '"digest":"sha256:[0-9a-f]+' | tail -n +2)" \
  "$(skopeo inspect --raw "oci:$work/out-remote:latest" | python3 -c 'import json,sys
for l in json.load(sys.stdin)["layers"][:3]: print("\"digest\":\"" + l["digest"], end="\n")')"
verify_store

note "from a folder and an archive: the same on top of it"
on_base folder oci:../layout:v1
skopeo copy -q "oci:$work/layout:v1" "oci-archive:$work/base.tar:v1"
on_base archive "oci-archive:$work/base.tar"
build_digest "$work/archive/archive.yaml" >/dev/null
build_digest --output "oci:$work/out-folder" "$work/folder/folder.yaml" >/dev/null
equal "made layers" "$(layers remote)" "$(layers folder)"

note "a tag that moves changes nothing; in an empty store, as an ordinary user"
other=$(skopeo inspect --raw "oci:$work/layout:latest" | sha256sum)
skopeo copy -q --dest-tls-verify=false "oci:$work/layout:latest" "docker://$registry/team/base:v1"
[ "${other%% *}" != "${digest#sha256:}" ] || fail "the tag did not move"
make_user
as_root cp -r "$work/remote" "$user_home/"
as_root chown -R "$user_id:$user_id" "$user_home/remote"
found=$(as_user mlenv build --locked "$user_home/remote/remote.yaml" | tail -n 1)
equal "the user's image" "$image" "$found"

note "a base that is gone is named"
status=0
sed -i 's/v1$/v2/' "$work/folder/folder.yaml"
"$MLENV" lock "$work/folder/folder.yaml" 2>"$work/err" || status=$?
equal "status" 1 "$status"
grep -qF 'has no image `v2`' "$work/err" || fail "$(cat "$work/err")"
sed -i 's/v2$/v1/' "$work/folder/folder.yaml"
rm -r "$work/layout"
MLENV_STORE=$work/empty "$MLENV" build --locked "$work/folder/folder.yaml" 2>"$work/err" && fail "it was built"
grep -qF 'is not to be had as it was locked' "$work/err" || fail "$(cat "$work/err")"
failing_with base-gone env MLENV_STORE="$work/empty" "$MLENV" --json build --locked "$work/folder/folder.yaml"

note "a base for another platform"
umoci init --layout "$work/layout"
umoci new --image "$work/layout:v1"
umoci config --image "$work/layout:v1" --architecture arm64
rm "$work/folder/folder.lock"
failing_with bad-base "$MLENV" --json lock "$work/folder/folder.yaml"
