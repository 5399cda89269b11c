#!/usr/bin/env bash
# An image of inputs that are the same everywhere has the committed digests, layer by layer, on every machine and
# whatever mlenv was compiled with: tests/golden/digests. ACCEPT=1 writes them anew, which is a new version of the
# layer format or of the lock, and never done lightly.
# packages: mmdebstrap
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/archive.sh
. "$root/tests/support/archive.sh"
need curl jq

python3 "$root/tests/support/golden_inputs.py" "$work"
cat >"$work/golden.yaml" <<'RECIPE'
name: golden
base: oci:base
packages: [golden-small, golden-large]
files: {src: /workspace}
env: {TOKENIZERS_PARALLELISM: "false"}
workdir: /workspace
command: [python, train.py]
bytecode: false
RECIPE
# An index of these two wheels; no other is asked.
for wheel in "$work"/wheels/*.whl; do
  file=${wheel##*/}
  name=$(tr _ - <<<"${file%%-*}")
  mkdir -p "$work/simple/$name"
  printf '<a href="../../wheels/%s#sha256=%s">%s</a>\n' "$file" "$(sha256sum "$wheel" | cut -d' ' -f1)" "$file" \
    >"$work/simple/$name/index.html"
done
serve "$work"
unset UV_INDEX UV_EXTRA_INDEX_URL UV_FIND_LINKS
export UV_DEFAULT_INDEX=$served/simple/
cd "$work"
image=$(SOURCE_DATE_EPOCH=1700000000 build_digest golden.yaml --output oci:image)
{
  sha256sum wheels/*.whl base/index.json | sed -E 's,^([0-9a-f]+)  (.*),input \2 sha256:\1,'
  echo "lock sha256:$(sha256sum golden.lock | cut -d' ' -f1)"
  "$MLENV" --json inspect golden | jq -r '.layers[] | "layer \(.title): \(.digest) \(.diff_id)"'
  echo "image $image"
} >found
if [ "${ACCEPT:-0}" = 1 ]; then cp found "$root/tests/golden/digests"; fi
diff "$root/tests/golden/digests" found || fail "other digests than tests/golden/digests"
note "$image"

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
[ -z "${MLENV_TEST_INNER:-}" ] || exit 0
note "another Debian release's compiler and libraries: the same digests, and the same bare Debian"
need mmdebstrap unshare pivot_root
need_root
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"
other=trixie
[ "$VERSION_CODENAME" != trixie ] || other=bookworm
mirror=$(cat /etc/apt/sources.list.d/*debian.sources /etc/apt/sources.list 2>/dev/null |
  sed -nE 's,^URIs: *(http\S+/debian)/?$,\1,p; s,^deb (\[.*\] )?(http\S+/debian)/? .*,\2,p' | head -n 1) || true
[ -n "$mirror" ] || skip "no Debian mirror among apt's sources"
shared_bare
bare=$image
tree=$work/$other
packages=$("$root/.ci/install" --list build | tr " " ,)
as_root mmdebstrap --quiet --mode=root --variant=apt --include="$packages,mount,python3,jq,curl,ca-certificates" \
  "$other" "$tree" "$mirror" 2>"$work/mmdebstrap.log" || fail "mmdebstrap: $(tail -n 3 "$work/mmdebstrap.log")"
as_root mkdir "$tree/src" "$tree/build" "$tree/cache" "$tree/uv" "$tree/shared" "$tree/old"
as_root cp -r "$work/bare" "$tree/bare"
as_root cp "$(uv_program)" "$tree/usr/local/bin/uv"
as_root cp /etc/resolv.conf /etc/hosts "$tree/etc/"
cat >"$work/inner" <<'INNER'
set -e
umount -l /old
cmake -S /src -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build /build --target mlenv >/build/log || { tail -n 50 /build/log; exit 1; }
/build/mlenv --version
export MLENV=/build/mlenv MLENV_TEST_INNER=1 MLENV_TEST_CACHE=/cache MLENV_TEST_SHARED=/shared HOME=/root
bash /src/tests/e2e/golden-digests.sh
MLENV_STORE=/shared/store XDG_CACHE_HOME=/cache /build/mlenv build --locked --no-unpack /bare/bare.yaml | tail -n 1 >/bare/found
INNER
as_root cp "$work/inner" "$tree/inner"
# A root of its own: in a chroot there are no user namespaces.
# shellcheck disable=SC2016  # for the inner shell to expand
as_root unshare --mount --propagation private --pid --fork bash -c '
  set -e
  tree=$1
  mount --bind "$tree" "$tree"
  mount --bind "$2" "$tree/src"
  mount -o remount,bind,ro "$tree/src"
  mount --bind "$3" "$tree/cache"
  mount -t proc proc "$tree/proc"
  mount --rbind /dev "$tree/dev"
  mount --rbind /sys "$tree/sys"
  mount -t tmpfs tmpfs "$tree/tmp"
  cd "$tree"
  pivot_root . old
  exec chroot . bash /inner' - "$tree" "$root" "$XDG_CACHE_HOME" >"$work/log" 2>&1 || fail "$(tail -n 30 "$work/log")"
note "$(grep '^mlenv ' "$work/log") compiled on $other"
equal "the bare Debian's digest" "$bare" "$(cat "$tree/bare/found")"
