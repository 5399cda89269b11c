#!/usr/bin/env bash
# Images from files into the store: what `save` wrote, from files, folders, pipes and compressed archives;
# what skopeo, Docker and podman wrote; files that are cut or changed; loads that are killed or have no room.
# The images are busybox with files of their own: small, since each is written, loaded and run many times.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$root/tests/support/engines.sh"
need jq skopeo gzip zstd xz dockerd docker podman busybox
need_root
python3 "$root/tests/support/busybox_image.py" "$work/busybox.tar" busybox
mkdir "$work/files"
head -c 4000000 /dev/urandom >"$work/files/data"
echo whole >"$work/files/six"
printf 'name: small\nbase: oci-archive:busybox.tar\nfiles: {files: /data}\n' >"$work/small.yaml"
digest=$(build_digest "$work/small.yaml")
config=$("$MLENV" save small oci:"$work/for-config" && jq -r .config.digest "$work/for-config/blobs/sha256/${digest#sha256:}")
cd "$work"

# Of commands in parentheses, too.
other() { cat "$work/other"; }
m() { as_root env MLENV_STORE="$(other)" "$MLENV" "$@"; }
# A folder of its own: what was published into the last one is made durable in the background for a moment.
empty_store() {
  as_root rm -rf "$(other)" || true
  mktemp -d -u "$work/other.XXXXXX" >"$work/next"
  mv "$work/next" "$work/other"
}
echo "$work/other.0" >"$work/other"
load() {
  empty_store
  m load "$@"
}
names() { m --json images | jq -r '[.images[].name] | sort | join(" ")'; }
runs() { # runs IMAGE: what was loaded is whole
  equal "file of $1" whole "$(m run --no-project "$1" -- cat /data/six)"
}

note "what was saved"
"$MLENV" save small oci:layout oci-archive:oci.tar docker-archive:docker.tar
for from in layout oci:layout:small:latest oci.tar oci-archive:oci.tar docker.tar docker-archive:docker.tar:small; do
  equal "digest from $from" "$digest" "$(load "$from" 2>err)"
  equal "what is said" 'loaded `small:latest`' "$(grep loaded err)"
  equal "names from $from" small:latest "$(names)"
done
runs small
equal "again" "$digest" "$(m load oci.tar 2>/dev/null)"
m store verify >/dev/null

note "pipes and compressed archives"
"$MLENV" save small oci-archive:- | load - >out 2>/dev/null
equal "digest by a pipe" "$digest" "$(cat out)"
for packer in gzip zstd xz; do
  "$packer" -1 -c oci.tar >"packed.$packer"
  equal "digest of $packer" "$digest" "$(load "packed.$packer" 2>/dev/null)"
done
equal "digest of gzip by a pipe" "$digest" "$(load - 2>/dev/null <packed.gzip)"
rm packed.*
mkfifo pipe
cat docker.tar >pipe &
writer=$!
equal "digest by a pipe with a name" "$digest" "$(load pipe 2>/dev/null)"
wait "$writer"

note "names"
load oci.tar --name team/mine:v7 >/dev/null 2>&1
equal "the name that was given" team/mine:v7 "$(names)"
"$MLENV" tag small small:old
"$MLENV" save small:old oci:layout
equal "one image, both names" "$digest" "$(load layout 2>/dev/null)"
equal "both names" "small:latest small:old" "$(names)"
sed 's/^name: .*/name: second/; s/^files: .*/files: {small.yaml: \/data\/six}/' small.yaml >second.yaml
second=$(build_digest second.yaml)
"$MLENV" save second oci:layout
equal "two images" "$digest $second" "$(load layout 2>/dev/null | paste -sd ' ')"
equal "three names" "second:latest small:latest small:old" "$(names)"
equal "one of them" "$second" "$(load oci:layout:second 2>/dev/null)"
empty_store
failing_with ambiguous m --json load layout --name one
grep -qF 'name one: `oci:layout:second:latest`' err || fail "$(cat err)"
failing_with bad-reference m --json load layout --name "x@$digest"
equal "nothing was loaded" "" "$(names)"
m --json load layout >answer 2>/dev/null
python3 "$root/tests/schema/check.py" <answer >/dev/null
equal "as JSON" "second:latest small:latest,small:old" "$(jq -r '[.images[].names | join(",")] | sort | join(" ")' answer)"

note "a name that is taken moves, and can be moved back"
m tag second small
m load oci.tar >/dev/null 2>&1
m rollback small >/dev/null 2>&1
equal "what the name meant before" "$second" "$(m --json inspect small | jq -r .digest)"

note "skopeo's archives"
skopeo copy --quiet oci-archive:oci.tar docker-archive:skopeo.tar:team/small:v3
tar -tf skopeo.tar | grep -q index.json && fail "this archive was to be one without an OCI layout"
load skopeo.tar >loaded 2>err
equal "name" docker.io/team/small:v3 "$(names)"
m save docker.io/team/small:v3 oci:again
equal "the config is kept" "$config" "$(jq -r .config.digest "again/blobs/sha256/$(sed 's/sha256://' loaded)")"
runs docker.io/team/small:v3
equal "the same digest each time" "$(cat loaded)" "$(load skopeo.tar 2>/dev/null)"
skopeo copy --quiet oci-archive:oci.tar oci-archive:skopeo-oci.tar:v3
equal "digest" "$digest" "$(load skopeo-oci.tar 2>err)"
grep -qF 'which has no name; `mlenv tag ' err || fail "$(cat err)"

note "Docker's and podman's archives"
# shellcheck disable=SC2119  # no options
start_docker
dock() { as_root docker --host "$DOCKER_HOST" "$@"; }
dock load --quiet --input docker.tar >/dev/null
dock tag small:latest team/docker:v1
dock save small:latest team/docker:v1 | load - >loaded 2>/dev/null
equal "names" "small:latest team/docker:v1" "$(names)"
m save team/docker:v1 oci:from-docker
equal "Docker's image" "$(dock image inspect --format '{{.Id}}' team/docker:v1)" \
  "$(jq -r .config.digest "from-docker/blobs/sha256/$(head -n 1 loaded | sed 's/sha256://')")"
runs team/docker:v1
podman_settings
pod() { as_engine_root podman "$@"; }
pod load --quiet --input "$work/oci.tar" >pulled
pod tag small:latest localhost/by-podman:v1 2>/dev/null || pod tag "$(pod images -q | head -n 1)" localhost/by-podman:v1
for format in docker-archive oci-archive; do
  pod save --quiet --format "$format" -o "$work/podman.tar" localhost/by-podman:v1
  load podman.tar >/dev/null 2>&1
  equal "name by podman, $format" localhost/by-podman:v1 "$(names)"
  runs localhost/by-podman:v1
  as_root rm podman.tar
done

note "files that are cut or changed"
refused() { # refused CODE INPUT
  empty_store
  failing_with "$1" m --json load "$2"
  equal "names after $2" "" "$(names)"
  m store verify >/dev/null
}
size=$(stat -c %s oci.tar)
head -c $((size / 2)) oci.tar >cut.tar
refused bad-tar cut.tar
cp oci.tar changed.tar
printf x | dd of=changed.tar bs=1 seek=$((size / 2)) conv=notrunc status=none
refused digest-mismatch changed.tar
refused absent nowhere.tar
empty_store
failing_with absent m --json load - </dev/null
echo '{}' >file
refused bad-tar file

note "killed, and no room"
empty_store
mkfifo slow
m load slow >/dev/null 2>&1 &
job=$!
exec 5>slow
head -c $((size / 2)) oci.tar >&5
wait_until 20 sh -c '[ -n "$(find "$0" -name archive.tar -size +1M 2>/dev/null)" ]' "$(other)/tmp"
as_root kill -9 "$(pgrep -f "^$MLENV load slow")"
exec 5>&-
wait "$job" || true
m store verify >/dev/null
equal "after it was killed" "$digest" "$(m load oci.tar 2>/dev/null)"
equal "nothing is left of it" "" "$(find "$(other)/tmp" -name archive.tar)"
empty_store
mkdir "$(other)"
as_root mount -t tmpfs -o "size=$((size / 2))" tmpfs "$(other)"
failing_with no-space m --json load oci.tar
as_root mount -o "remount,size=$((size * 4))" "$(other)"
equal "once there is room" "$digest" "$(m load oci.tar 2>/dev/null)"
m store verify >/dev/null
as_root umount "$(other)"
