#!/usr/bin/env bash
# An image that somebody made to deceive whoever looks at it: nothing of it moves the cursor of a
# terminal, colours it, or reads backwards, in any answer, message or progress line.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq curl

cat >"$work/make.py" <<'PYTHON'
"""make.py FOLDER VERSION: an OCI image as blobs and a manifest, its dpkg records behind a hard link."""
import gzip, hashlib, io, json, os, sys, tarfile
folder, version = sys.argv[1:]
ESC, CSI, RLO = "\x1b]0;owned\x07\x1b[31m", "\u009b31m", "\u202e"
status = f"Package: a{ESC}\nStatus: install ok installed\nVersion: {version}{CSI}{RLO}\nArchitecture: all\n\n"
status += f"Package: plain\nStatus: install ok installed\nVersion: {version}\nArchitecture: all\n"
out = io.BytesIO()
with tarfile.open(fileobj=out, mode="w") as tar:
    def add(name, text=b"", **more):
        info = tarfile.TarInfo(name)
        info.size = len(text)
        for key, value in more.items():
            setattr(info, key, value)
        tar.addfile(info, io.BytesIO(text))
    add("usr/share/real", status.encode())
    add("var/lib/dpkg/status", type=tarfile.LNKTYPE, linkname="usr/share/real")
    add(f"usr/lib/python3/site-packages/b{ESC}-{version}.dist-info/METADATA", b"Name: b\n" * 100000)
    add(f"etc/{ESC}", b"x")
tar = out.getvalue()
os.makedirs(folder, exist_ok=True)
def put(name, data):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    open(f"{folder}/{name}", "wb").write(data)
    return {"digest": digest, "size": len(data)}
layer = put("layer", gzip.compress(tar, mtime=0))
config = put("config", json.dumps({
    "architecture": "amd64", "os": "linux",
    "config": {"Env": [f"A={ESC}\nfake: line", f"V={version}"], "Labels": {f"l{ESC}": f"v{CSI}"},
               "Cmd": ["sh", ESC], "WorkingDir": f"/w{ESC}"},
    "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]},
    "history": [{"created_by": ESC}]}).encode())
put("manifest", json.dumps({
    "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config},
    "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **layer,
                "annotations": {"dev.mlenv.title": f"t{ESC}{RLO}"}}]}).encode())
PYTHON
start_registry
push() { # push TAG VERSION
  python3 "$work/make.py" "$work/image" "$2"
  local blob digest place
  for blob in layer config; do
    digest=sha256:$(sha256sum <"$work/image/$blob" | cut -d' ' -f1)
    place=$(curl --noproxy '*' -fsS -X POST -D - -o /dev/null "http://$registry/v2/hostile/blobs/uploads/" |
      sed -n 's/^[Ll]ocation: \(.*\)\r$/\1/p')
    curl --noproxy '*' -fsS -X PUT -H 'Content-Type: application/octet-stream' \
      --data-binary "@$work/image/$blob" "$place&digest=$digest"
  done
  curl --noproxy '*' -fsS -X PUT -H 'Content-Type: application/vnd.oci.image.manifest.v1+json' \
    --data-binary "@$work/image/manifest" "http://$registry/v2/hostile/manifests/$1"
}
harmless() { # harmless FILE: no control character but the line's end, nothing that turns the direction
  python3 - "$1" <<'PYTHON' || fail "$1 has: $(cat -v "$1")"
import re, sys
text = open(sys.argv[1], "rb").read().decode()
# What draws progress on a terminal: up, erase.
if "tty" in sys.argv[1]:
    text = text.replace("\r\x1b[2K\x1b[1A\x1b[2K", "").replace("\x1b[1A\x1b[2K", "")
sys.exit(1 if re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", text) else 0)
PYTHON
}

push one 1
push two 2
"$MLENV" --progress tty pull "$registry/hostile:one" >"$work/pull" 2>"$work/pull.tty"
"$MLENV" --verbose --progress plain pull "$registry/hostile:two" >"$work/pull2" 2>"$work/pull2.err"
"$MLENV" inspect "$registry/hostile:one" >"$work/inspect"
grep -qxF 'env       A=\x1b]0;owned\x07\x1b[31m\nfake: line' "$work/inspect" || fail "inspect: $(cat -v "$work/inspect")"
"$MLENV" --json inspect "$registry/hostile:one" >"$work/inspect.json"
equal "the value itself" $'A=\e]0;owned\a\e[31m\nfake: line' "$(jq -r '.env[0]' "$work/inspect.json")"
"$MLENV" images >"$work/images"

note "diff, of blobs and of trees"
differ() {
  local status=0
  "$MLENV" "$@" diff "$registry/hostile:one" "$registry/hostile:two" || status=$?
  equal "status of diff" 3 "$status"
}
differ --progress plain >"$work/diff" 2>"$work/diff.err"
differ --json >"$work/diff.json"
grep -qE '^  ↑ plain +1 → 2$' "$work/diff" || fail "the records behind the hard link: $(cat -v "$work/diff")"
grep -qF 'a\x1b]0;owned\x07\x1b[31m' "$work/diff" || fail "names: $(cat -v "$work/diff")"
grep -qF 't\x1b]0;owned\x07\x1b[31m\u{202e}' "$work/diff.err" || fail "title: $(cat -v "$work/diff.err")"
for file in pull pull.tty pull2 pull2.err inspect inspect.json images diff diff.err diff.json; do
  harmless "$work/$file"
done
verify_store
