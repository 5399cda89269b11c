#!/usr/bin/env bash
# A Debian base is what mmdebstrap makes of the same packages: the same paths, types, modes, owners and
# contents, but for the differences listed here. mlenv builds as an ordinary user, mmdebstrap as root.
# packages: mmdebstrap
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need mmdebstrap python3
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || skip "apt's sources here are not Debian's"
sources=${MLENV_DEBIAN_SOURCES:-}
for one in /etc/apt/sources.list.d/*debian.sources /etc/apt/sources.list; do
  [ -n "$sources" ] || [ ! -s "$one" ] || sources=$one
done
[ -n "$sources" ] || skip "no file with Debian's package sources"
make_user

as_user mkdir "$user_home/oracle"
as_user tee "$user_home/oracle/recipe.yaml" >/dev/null <<RECIPE
name: oracle
base: debian:$VERSION_CODENAME
system: [python3, git, ca-certificates, openssh-server, cron, dbus, fontconfig]
RECIPE
note "mlenv, as an ordinary user"
# shellcheck disable=SC2016  # the user's own variables
as_user bash -c 'umask 077; mlenv build ~/oracle/recipe.yaml --output oci:$HOME/oracle/image' >/dev/null
lock=$user_home/oracle/recipe.lock

note "mmdebstrap, as root, with the versions of the lock"
include=$(sed -nE 's/.*name = "([^"]*)", version = "([^"]*)", architecture = .*/\1=\2/p' "$lock" | paste -sd,)
epoch=$(sed -nE 's/^epoch = ([0-9]+)$/\1/p' "$lock")
# As in the sandbox: bytecode that a mere import leaves behind differs from run to run.
# shellcheck disable=SC2016  # the hook's own
as_root env SOURCE_DATE_EPOCH="$epoch" PYTHONDONTWRITEBYTECODE=1 mmdebstrap --quiet --mode=root --variant=minbase \
  --dpkgopt=force-unsafe-io --customize-hook='rm "$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"' \
  --include="$include" "$VERSION_CODENAME" "$work/expected.tar" "$sources" 2>"$work/mmdebstrap.log" ||
  fail "mmdebstrap: $(tail -n 3 "$work/mmdebstrap.log")"

note "comparing"
as_root python3 - "$work/expected.tar" "$user_home/oracle/image" <<'PYTHON'
import hashlib, json, re, sys, tarfile

# What differs, and why.
KNOWN = [
    # made for one machine or one moment: mlenv leaves them out
    (r"ONLY-EXPECTED", r"/etc/ssh/ssh_host_.*_key(\.pub)?|/etc/\.pwd\.lock|/etc/(passwd|group|g?shadow)-"),
    (r"ONLY-EXPECTED", r"/var/lib/dpkg/(.*-old|lock|lock-frontend|triggers/Lock)"),
    (r"ONLY-EXPECTED", r"/var/cache/debconf/.*-old|/var/cache/ldconfig/aux-cache|/var/(cache|lib)/apt/.*lock"),
    (r"ONLY-EXPECTED", r"/var/lib/dbus/machine-id|/var/cache/fontconfig/.*|/var/log/.*"),
    (r"CONTENT", r"/etc/machine-id"),
    # mmdebstrap's own: its sources, its host's name and resolver, apt as it was run by it
    (r"ONLY-EXPECTED", r"/etc/(fstab|hostname|resolv\.conf)|/etc/apt/sources\.list(\.d/.*)?"),
    (r"ONLY-EXPECTED", r"/var/lib/apt/extended_states|/var/lib/dpkg/arch|/dev/.*"),
    (r"MODE|OWNER", r"/var/(cache/apt/archives|lib/apt/lists)/partial"),
    # lines in the order in which packages were configured
    (r"CONTENT", r"/etc/shells|/var/cache/debconf/config\.dat|/var/lib/dpkg/triggers/File"),
    # the day of the last change: mmdebstrap's own first step does not heed SOURCE_DATE_EPOCH
    (r"CONTENT", r"/etc/shadow"),
]

def read(tar, tree):
    for member in tar:
        path = "/" + member.name.removeprefix("./").strip("/")
        if path == "/.":
            path = "/"
        if member.islnk():
            tree[path] = tree["/" + member.linkname.removeprefix("./")]
            continue
        content = member.linkname if member.issym() else ""
        if member.isreg():
            content = hashlib.sha256(tar.extractfile(member).read()).hexdigest()
        kind = {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link", tarfile.REGTYPE: "file"}
        tree[path] = (kind.get(member.type, "other"), 0 if member.issym() else member.mode,
                      (member.uid, member.gid), content)

expected, found = {}, {}
with tarfile.open(sys.argv[1]) as tar:
    read(tar, expected)
def blob(digest):
    return f"{sys.argv[2]}/blobs/{digest.replace(':', '/')}"
def document(digest):
    with open(blob(digest)) as file:
        return json.load(file)
with open(sys.argv[2] + "/index.json") as file:
    manifest = document(json.load(file)["manifests"][0]["digest"])
for layer in manifest["layers"]:
    with tarfile.open(blob(layer["digest"])) as tar:
        read(tar, found)
if len(found) < 5000:
    sys.exit(f"only {len(found)} paths in the image")

differences = []
for path in sorted(expected.keys() | found.keys()):
    a, b = expected.get(path), found.get(path)
    if a is None or b is None:
        differences.append(("ONLY-FOUND" if a is None else "ONLY-EXPECTED", path, a or b))
        continue
    for name, x, y in zip(("TYPE", "MODE", "OWNER", "CONTENT"), a, b):
        if x != y:
            differences.append((name, path, f"{x} {y}"))
bad = [d for d in differences
       if d[1] != "/" and not any(re.fullmatch(k, d[0]) and re.fullmatch(p, d[1]) for k, p in KNOWN)]
for difference in bad:
    print(*difference)
print(f"{len(expected)} paths, {len(differences)} known differences" if not bad else f"{len(bad)} differences")
sys.exit(1 if bad else 0)
PYTHON
