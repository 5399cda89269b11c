#!/usr/bin/env bash
# Texts of any size: manifests, configs, answers and refusals of a registry, an archive, a recipe and what lies
# beside it. What is too large is refused before it is read, and memory stays small.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2034  # for both.sh
long_both=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need python3
export HOME=$work/home DOCKER_CONFIG=$work/docker XDG_CONFIG_HOME=$work/home/.config
mkdir -p "$XDG_CONFIG_HOME/mlenv" "$DOCKER_CONFIG" "$work/project"
log=$work/log
port=$(free_port)
start "$work/server" python3 "$root/tests/support/hostile_registry.py" "$port" "$log"
wait_until 10 bash -c ": </dev/tcp/127.0.0.1/$port"
at=127.0.0.1:$port
most=120 # MB: the program itself takes some 30

# small CODE COMMAND…: it fails with that code (none: it works) and no more memory than that.
small() {
  python3 - "$most" "$work/out" "$work/err" "$@" <<'P'
import os, subprocess, sys
most, out, err, code = int(sys.argv[1]), open(sys.argv[2], "w"), open(sys.argv[3], "w"), sys.argv[4]
child = subprocess.Popen(sys.argv[5:], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
_, status, used = os.wait4(child.pid, 0)
said = open(sys.argv[3]).read()
if used.ru_maxrss >> 10 > most:
    sys.exit("failed: %d MB: %s" % (used.ru_maxrss >> 10, sys.argv[5:]))
if (code == "none") != (status == 0) or (code != "none" and '"code":"%s"' % code not in said):
    sys.exit("failed: not %s: %s: %s" % (code, sys.argv[5:], said[:2000]))
P
}
blobs() { grep -c ' GET .*/blobs/' "$log" || true; }

note "configs and manifests of a registry, before a blob is asked for"
for mode in big-config told-config many-values told-manifest; do
  small too-large "$MLENV" --json pull "$at/$mode/x:v1"
  equal "$mode: blobs" 0 "$(blobs)"
  small none "$MLENV" --json images
  equal "$mode: images" 0 "$(jq '.images | length' "$work/out")"
done
small registry "$MLENV" --json pull "$at/big-error/x:v1"
note "a size that is a lie, with the blob here and not here"
failing_with digest-mismatch "$MLENV" --json pull "$at/other-size/x:v1"
"$MLENV" pull "$at/ok/x:v1" >/dev/null 2>&1
failing_with bad-image "$MLENV" --json pull "$at/other-size/x:v1"
verify_store

note "the same in an archive"
python3 - "$root" "$work" <<'P'
import io, json, hashlib, sys, tarfile
work = sys.argv[2]
def made(name, config, manifest=lambda m: m):
    digest = lambda data: "sha256:" + hashlib.sha256(data).hexdigest()
    tar = b"\0" * 1024
    blobs = {digest(tar): tar, digest(config): config}
    text = json.dumps(manifest({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": len(config)},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(tar), "size": len(tar)}]})).encode()
    blobs[digest(text)] = text
    index = json.dumps({"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(text), "size": len(text)}]}).encode()
    with tarfile.open(f"{work}/{name}.tar", "w") as out:
        for path, data in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index)] + [("blobs/sha256/" + d[7:], b) for d, b in blobs.items()]:
            one = tarfile.TarInfo(path)
            one.size = len(data)
            out.addfile(one, io.BytesIO(data))
config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(b"\0" * 1024).hexdigest()]}}).encode()
made("good", config)
made("big", config[:-1] + b',"x":[' + b"[]," * (20 << 20) + b"[]]}")
def wide(manifest):
    manifest["config"]["size"] += 1
    return manifest
made("wide", config[:-1] + b',"x":[' + b"[]," * 1_000_000 + b"[]]}")
P
"$MLENV" load "$work/good.tar" --name good:v1 >/dev/null
small too-large "$MLENV" --json load "$work/big.tar" --name big:v1
small too-large "$MLENV" --json load "$work/wide.tar" --name wide:v1
small none "$MLENV" --json images

note "a recipe, its lock and what it names; this machine's files"
cd "$work/project"
truncate -s 200M huge.yaml
small too-large "$MLENV" --json lock huge.yaml
head -c 4000000 /dev/zero | tr '\0' '#' >wide.yaml
small too-large "$MLENV" --json lock wide.yaml
printf 'name: x\nbase: debian:bookworm\nrequirements: requirements.txt\n' >recipe.yaml
truncate -s 200M requirements.txt
small recipe-invalid "$MLENV" --json lock recipe.yaml
rm requirements.txt
printf 'name: x\nbase: debian:bookworm\nfiles: {hello: /workspace/hello}\n' >recipe.yaml
echo hello >hello
truncate -s 4G recipe.lock
small too-large "$MLENV" --json lock recipe.yaml
rm recipe.lock
truncate -s 200M "$DOCKER_CONFIG/config.json"
small too-large "$MLENV" --json pull "$at/basic/x:v1" --plain-http
rm "$DOCKER_CONFIG/config.json"
truncate -s 200M "$XDG_CONFIG_HOME/mlenv/config.yaml"
small too-large "$MLENV" --json pull "$at/ok/x:v1"
rm "$XDG_CONFIG_HOME/mlenv/config.yaml"
truncate -s 200M big.env
small bad-env-file "$MLENV" --json run --no-project --no-check --env-file big.env good:v1 -- true
truncate -s 200M big.facts.json
small too-large "$MLENV" --json facts big.facts.json
