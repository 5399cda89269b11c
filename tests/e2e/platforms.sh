#!/usr/bin/env bash
# One lock for linux/amd64 and linux/arm64, from the real indexes of both; on one machine the images of
# both on bases that are images. Oracles: apt for arm64, skopeo, umoci, the wheels' own ELF headers.
# shellcheck disable=SC2016 # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need apt-get dpkg-deb jq skopeo umoci
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
apt=$work/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
: >"$apt/status"
cat >"$work/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
APT::Install-Recommends "false";
APT::Sandbox::User "";
CONF
if [ -n "${MLENV_DEBIAN_SOURCES:-}" ]; then
  cp "$(realpath "$MLENV_DEBIAN_SOURCES")" "$work/machine.list"
  printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "-";\n' "$work/machine.list" >>"$work/apt.conf"
fi
export APT_CONFIG=$work/apt.conf
apt-get update -qq >"$work/update.log" 2>&1 || skip "apt-get update: $(tail -n 1 "$work/update.log")"
mapfile -t base < <(apt-cache dumpavail |
  awk -v RS= '/\nEssential: yes/ || /\nPriority: required/ { print $2 }' | LC_ALL=C sort -u)
apt-get install -s "${base[@]}" apt ca-certificates python3 >"$work/apt.log" 2>&1 || fail "$(tail -n 3 "$work/apt.log")"
sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1 \2/p' "$work/apt.log" | LC_ALL=C sort >"$work/by-apt"
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
  (
    cd "$work/debs-$machine"
    sed -i "s/^APT::Architecture .*/APT::Architecture \"$machine\";/; s/^APT::Architectures .*/APT::Architectures { \"$machine\"; };/" "$APT_CONFIG"
    [ "$machine" = arm64 ] || apt-get update -qq
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
