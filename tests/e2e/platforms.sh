#!/usr/bin/env bash
# One lock for linux/amd64 and linux/arm64, from the real indexes of both; on one machine the images of
# both on bases that are images, each alone and both under one name. Oracles: apt for arm64, skopeo, umoci, crane,
# docker-registry, the wheels' own ELF headers.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/apt.sh
. "$root/tests/support/apt.sh"
# shellcheck source=tests/support/crane.sh
. "$root/tests/support/crane.sh"
need apt-get dpkg-deb jq skopeo umoci
need_root
crane_program
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"
[ "$(uname -m)" = x86_64 ] || skip "the other machine here is an arm64 one"
suite=$VERSION_CODENAME
[ "$suite" = bookworm ] || skip "the bases here are made of bookworm's Python"
here=linux/amd64
there=linux/arm64
tell() { "$MLENV" --json "$@" 2>"$work/err" || fail "$*: $(cat "$work/err")"; }

note "a lock for both"
mkdir "$work/two"
two=$work/two/two.yaml
write_two() { # write_two PLATFORM…
  local list
  printf -v list '%s, ' "$@"
  printf 'name: two\nbase: debian:%s\nplatforms: [%s]\npackages: [markupsafe, six]\nsystem: [ca-certificates]\n' \
    "$suite" "$list" >"$two"
}
write_two "$here"
alone=$(tell lock "$two" | jq -r .digest)
grep -q '^revision = 1$' "$work/two/two.lock" || fail "one platform: $(head -n 4 "$work/two/two.lock")"
write_two "$here" "$there"
failing_with lock-outdated "$MLENV" --json lock --locked "$two"
grep -qF '+ platform linux/arm64' "$work/err" || fail "$(cat "$work/err")"
tell lock "$two" >"$work/answer"
equal "changes" '+ platform linux/arm64' "$(jq -r '.changes[]' "$work/answer")"
equal "the first platform's own digest" "$alone" "$(jq -r '.platforms[0].digest' "$work/answer")"
lock=$work/two/two.lock
for part in 'markupsafe-[^"]*_aarch64.whl"' 'markupsafe-[^"]*_x86_64.whl"' '_arm64.deb"' '_amd64.deb"'; do
  grep -qi "$part" "$lock" || fail "no $part in the lock"
done
equal "wheels for every machine are there once" 1 "$(grep -c 'six-.*-py2.py3-none-any.whl' "$lock")"
equal "so are packages" 1 "$(grep -c 'name = "ca-certificates"' "$lock")"
before=$(sha256sum <"$lock")
grep -q '"written":false' <<<"$(tell lock "$two")" || fail "locked again"
tell lock --locked "$two" >/dev/null
tell lock --upgrade "$two" >/dev/null
equal "the lock, made anew" "$before" "$(sha256sum <"$lock")"
tell lock --upgrade six "$two" >/dev/null
equal "the lock, one package made anew" "$before" "$(sha256sum <"$lock")"
"$MLENV" diff "$lock" "$two" >/dev/null 2>"$work/err" || fail "$(cat "$work/err")"
grep -qF 'compared for linux/amd64; `--platform` compares for linux/arm64' "$work/err" || fail "$(cat "$work/err")"
"$MLENV" diff --platform "$there" "$lock" "$two" >/dev/null

note "arm64's packages are those that apt takes"
own_apt arm64
mapfile -t base < <(apt_base)
apt_takes "${base[@]}" apt ca-certificates python3 >"$work/by-apt"
python3 - "$lock" >"$work/by-mlenv" <<'PYTHON'
import sys, tomllib
lock = tomllib.load(open(sys.argv[1], "rb"))
other = lock["others"]["linux/arm64"]
own = {deb["name"]: deb for deb in other["packages"]["debian"]}
without = other.get("without", {}).get("debian", [])
for deb in lock["packages"]["debian"]:
    if deb["architecture"] == "all" and deb["name"] not in without:
        own.setdefault(deb["name"], deb)
print("\n".join(sorted(f"{deb['name']} {deb['version']}" for deb in own.values())))
PYTHON
LC_ALL=C sort -o "$work/by-mlenv" "$work/by-mlenv"
diff -u "$work/by-apt" "$work/by-mlenv" || fail "other packages than apt's"
note "$(wc -l <"$work/by-apt") packages"

note "what would have to run elsewhere is said"
failing_with foreign-platform "$MLENV" --json build --platform "$there" "$two"
grep -qF 'are configured by dpkg' "$work/err" || fail "$(cat "$work/err")"
failing_with no-platform "$MLENV" --json build --platform linux/riscv64 "$two"

note "bases of both, of Debian's own files, under one name"
umoci init --layout "$work/layout"
for machine in arm64 amd64; do
  mkdir "$work/debs-$machine"
  own_apt "$machine"
  (
    cd "$work/debs-$machine"
    apt-get download -qq libc6 python3.11-minimal libpython3.11-minimal zlib1g libexpat1 base-files
  )
  umoci new --image "$work/layout:$machine"
  as_root umoci unpack --image "$work/layout:$machine" "$work/bundle-$machine"
  files=$work/bundle-$machine/rootfs
  for deb in "$work/debs-$machine"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | as_root tar -x -C "$files"; done
  as_root ln -s python3.11 "$files/usr/bin/python3"
  as_root umoci repack --image "$work/layout:$machine" "$work/bundle-$machine"
  umoci config --image "$work/layout:$machine" --architecture "$machine" --os linux \
    --config.env PATH=/usr/bin:/bin
done
as_root chown -R "$(id -u):$(id -g)" "$work/layout"
jq '.manifests |= map(.platform = {os: "linux", architecture: .annotations["org.opencontainers.image.ref.name"]}
  | .annotations["org.opencontainers.image.ref.name"] = "v1")' "$work/layout/index.json" >"$work/index.json"
cp "$work/index.json" "$work/layout/index.json"

mkdir "$work/on"
on=$work/on/on.yaml
write_on() { # write_on BYTECODE PACKAGES
  printf 'name: on\nbase: oci:../layout:v1\nplatforms: [linux/arm64, linux/amd64]\nbytecode: %s\npackages: [%s]\n' \
    "$1" "$2" >"$on"
}
write_on false 'markupsafe, six'
export MLENV_STORE=$work/store
arm=$(tell build --platform "$there" --output "oci:$work/image" "$on" | jq -r .image)
equal "architecture" 'arm64 v8 linux' "$(skopeo inspect --config "oci:$work/image:latest" |
  jq -r '"\(.architecture) \(.variant) \(.os)"')"
equal "base" "$(jq -r '.manifests[] | select(.platform.architecture == "arm64").digest' "$work/layout/index.json")" \
  "$(skopeo inspect --config "oci:$work/image:latest" |
    jq -r '.config.Labels["org.opencontainers.image.base.digest"]')"
as_root umoci unpack --image "$work/image:latest" "$work/unpacked"
program=$(find "$work/unpacked/rootfs/opt/venv/lib/python3/site-packages/markupsafe" -name '*.so')
# ELF: e_machine of AArch64 is 183.
equal "machine of $program" 183 "$(od -An -j18 -N2 -tu2 "$program" | tr -d ' ')"
equal "names" "on:latest-arm64 linux/arm64" "$(tell inspect on:latest-arm64 | jq -r '"on:latest-arm64 \(.platform)"')"
failing_with foreign-platform "$MLENV" --json run on:latest-arm64 -- python3
tell build "$on" >/dev/null
grep -q '^revision = 2$' "$work/on/on.built" || fail "$(cat "$work/on/on.built")"
grep -q '^\[others."linux/arm64"\]$' "$work/on/on.built" || fail "$(cat "$work/on/on.built")"
equal "built again" "$arm" "$(tell build --locked --platform "$there" "$on" | jq -r .image)"
verify_store

note "bytecode of wheels for every machine, made here, is that of the other machine too"
write_on true six
failing_with foreign-platform "$MLENV" --json build --platform "$there" "$on"
grep -qF 'bytecode: false' "$work/err" || fail "$(cat "$work/err")"
tell build "$on" >/dev/null
arm=$(tell build --platform "$there" "$on" | jq -r .image)

note "another machine takes what is recorded from the pulled image"
start_registry
"$MLENV" -q push on:latest-arm64 "$registry/team/on:arm64" >/dev/null
export MLENV_STORE=$work/other
failing_with foreign-platform "$MLENV" --json build --locked --platform "$there" "$on"
"$MLENV" -q pull --platform "$there" "$registry/team/on:arm64" >/dev/null
equal "image" "$arm" "$(tell build --locked --platform "$there" "$on" | jq -r .image)"

note "both as one"
both=$registry/team/on:both
"$MLENV" build --locked --platform all --push "$both" --output "oci:$work/both" --output "oci-archive:$work/both.tar" "$on" \
  >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
index=$(tail -n 1 "$work/out")
grep -q '^revision = 3$' "$work/on/on.built" || fail "$(cat "$work/on/on.built")"
equal "recorded" "index = \"${index#sha256:}\"" "$(grep '^index' "$work/on/on.built")"
equal "digest of the index" "$index" "sha256:$(skopeo inspect --raw "oci:$work/both:latest" | sha256sum | cut -d' ' -f1)"
skopeo inspect --raw "oci:$work/both:latest" >"$work/index"
equal "platforms" 'amd64 arm64/v8' "$(jq -r '[.manifests[].platform | [.architecture, .variant // empty] | join("/")] | join(" ")' "$work/index")"
equal "canonical" "$(jq -cS . "$work/index")" "$(cat "$work/index")"
equal "arm64's image" "$arm" "$(jq -r '.manifests[1].digest' "$work/index")"
for from in "oci:$work/both:latest" "oci-archive:$work/both.tar:latest" "docker://$both"; do
  rm -rf "$work/copy"
  skopeo copy -q --all --preserve-digests --src-tls-verify=false "$from" "dir:$work/copy"
  cmp "$work/index" "$work/copy/manifest.json"
done
"${crane:?}" validate --insecure --remote "$both"
for machine in amd64 arm64; do "$crane" validate --insecure --platform "linux/$machine" --remote "$both"; done
"$MLENV" images >"$work/list"
grep -qE '^  linux/arm64 +[0-9a-f]{12} ' "$work/list" || fail "$(cat "$work/list")"
equal "inspected" "$arm" "$(tell inspect --platform linux/arm64 on | jq -r .digest)"
verify_store
cp "$work/on/on.built" "$work/on.built"
sed -i 's/^index = "......../index = "00000000/' "$work/on/on.built"
failing_with not-reproduced "$MLENV" --json build --locked --platform all "$on"
cp "$work/on.built" "$work/on/on.built"
tell build --locked "$on" >/dev/null
equal "a name of this machine's image alone" linux/amd64 "$(tell inspect on | jq -r .platform)"

note "pulled as one, or this machine's alone"
export MLENV_STORE=$work/whole
equal "pulled" "$index" "$("$MLENV" -q pull --platform all "$both")"
verify_store
"$MLENV" -q tag "$both" "$registry/other/on:copy"
"$MLENV" -q push "$registry/other/on:copy" >/dev/null
equal "pushed elsewhere" "$index" "$("$crane" digest --insecure "$registry/other/on:copy")"
"$MLENV" -q save "$both" "oci:$work/saved"
cmp <(skopeo inspect --raw "oci:$work/saved:both") "$work/index"
failing_with bad-output "$MLENV" --json save "$both" "docker-archive:$work/one.tar"
"$MLENV" -q save --platform "$there" "$both" "docker-archive:$work/one.tar"
"$MLENV" rm "$both" "$registry/other/on:copy"
[ -z "$("$MLENV" images --names)" ] || fail "names left: $("$MLENV" images --names)"
export MLENV_STORE=$work/part
equal "this machine's" "$(jq -r '.manifests[0].digest' "$work/index")" "$("$MLENV" -q pull "$both")"

note "a platform that cannot be built here takes nothing from the other"
printf 'name: half\nbase: oci:../layout:v1\nplatforms: [linux/arm64, linux/amd64]\npackages: [markupsafe]\n' >"$work/on/half.yaml"
failing_with foreign-platform "$MLENV" --json build --platform all "$work/on/half.yaml"
tail -n 1 "$work/err" | jq -r '.frames[]' >"$work/frames"
grep -qF 'cannot be built here for linux/arm64' "$work/frames" || fail "$(cat "$work/err")"
grep -qF 'the image for linux/amd64 is there, as `half:latest`' "$work/frames" || fail "$(cat "$work/err")"
grep -q '^platform = "linux/amd64"$' "$work/on/half.built" || fail "not recorded"
equal "named" linux/amd64 "$(tell inspect half | jq -r .platform)"
