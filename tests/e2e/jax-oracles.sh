#!/usr/bin/env bash
# What others say of an image: skopeo and umoci read it, umoci's tree is ours, dpkg finds nothing to complain
# about, apt installs into a running container. Of Debian with NumPy; with MLENV_TEST_LONG=1 of jax-cpu, in which
# the example trains (in every run deterministic.sh and quickstart.sh train in that).
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need skopeo umoci jq

name=jax-cpu
if [ "$MLENV_TEST_LONG" = 1 ]; then
  shared_image $name
else
  name=small
  shared_small
fi
"$MLENV" build "$recipe_path" --locked --output "oci:$work/oci" --output "oci-archive:$work/oci.tar" \
  >/dev/null
note "skopeo"
for place in "oci:$work/oci" "oci-archive:$work/oci.tar"; do
  equal "digest by skopeo of $place" "$image" "$(skopeo inspect --format '{{.Digest}}' "$place")"
done
skopeo copy --quiet "oci:$work/oci" "dir:$work/copied" # verifies every blob
rm -rf "$work/copied" "$work/oci.tar"

note "umoci"
tag=$(jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' "$work/oci/index.json")
rootless=()
[ "$(id -u)" -eq 0 ] || rootless=(--rootless)
umoci unpack "${rootless[@]}" --image "$work/oci:${tag}" "$work/unpacked"
tree=$work/unpacked/rootfs
equal "lib/python3.11 of the environment" python3 "$(readlink "$tree/opt/venv/lib/python3.11")"

# What a run adds or hides: its own resolv.conf, hosts and name, the machine's package sources.
cat >"$work/tree.sh" <<'TREE'
cd "$1"
find bin boot etc home lib lib64 media mnt opt root sbin srv usr var \
  -path etc/apt -prune -o -path etc/resolv.conf -o -path etc/hosts -o -path etc/hostname -o \
  -path etc/mtab -o -path etc/pip.conf -o -type l -printf '%p -> %l %U:%G\n' -o -type d -printf '%p %m %U:%G\n' -o \
  -type f -printf '%p %m %U:%G %s\n'
find opt usr/bin etc/passwd etc/shadow var/lib/dpkg -type f -print0 | xargs -0 sha256sum
TREE
if [ "$(id -u)" -eq 0 ]; then
  LC_ALL=C bash "$work/tree.sh" "$tree" | LC_ALL=C sort >"$work/theirs"
  "$MLENV" run -v "$work/tree.sh:/tree.sh:ro" -w / $name -- sh /tree.sh / |
    LC_ALL=C sort >"$work/ours"
  diff "$work/theirs" "$work/ours" >"$work/diff" || {
    head -n 40 "$work/diff"
    fail "umoci's tree is another one ($(grep -c '^[<>]' "$work/diff") lines)"
  }
  note "the same tree: $(wc -l <"$work/ours") lines"
fi
chmod -R u+rwX "$work/unpacked"
rm -rf "$work/unpacked" "$work/oci"

note "dpkg and apt in a container"
equal "dpkg --audit" "" "$("$MLENV" run $name -- dpkg --audit 2>&1)"
"$MLENV" run $name -- sh -c 'apt-get update -q >/dev/null && apt-get install -qy hello && hello' |
  tee "$work/apt.log" | tail -n 1 | grep -q 'Hello, world!' || fail "apt: $(cat "$work/apt.log")"

[ "$MLENV_TEST_LONG" = 1 ] || exit 0

note "training"
cd "$root/examples"
"$MLENV" run jax-cpu -- python train-jax.py | tee "$work/out"
grep -q 'accuracy 1.000' "$work/out" || fail "no accuracy of 1"
verify_store
