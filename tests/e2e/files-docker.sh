#!/usr/bin/env bash
# Docker is the oracle: what it leaves out of a build for `.dockerignore` is what mlenv leaves out.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need dockerd docker busybox
need_root

# shellcheck disable=SC2119  # no options
start_docker
dock() { as_root docker --host "$DOCKER_HOST" "$@"; }

project=$work/project
for path in a.md README.md README-secret.md temp tempa tempab/in somedir/temporary.txt \
  somedir/subdir/temporary.txt somedir/subdir/deep/temporary.txt src/a.py src/a.pyc src/deep/b.pyc \
  src/data/x.bin src/data/labels.json src/data/deep/y.bin docs/index.md docs/deep/index.md 'odd name' \
  'a*b' axb '[x]' x 'é' '#hash' '!bang' abc/def abcd foo/bar dir/foo/bar; do
  mkdir -p "$project/$(dirname "$path")"
  echo "$path" >"$project/$path"
done
# A small base: it is written again for each table.
python3 "$root/tests/support/busybox_image.py" "$work/busybox.tar" busybox
printf 'name: oracle\nbase: oci-archive:../busybox.tar\nfiles: {.: /project}\n' >"$project/app.yaml"
printf 'FROM scratch\nCOPY . /project/\nCMD ["x"]\n' >"$work/Dockerfile"
build_digest "$project/app.yaml" >/dev/null # makes the lock
cp "$work/Dockerfile" "$project/"

ours() {
  "$MLENV" build "$project/app.yaml" --output "oci:$work/oci" >/dev/null
  python3 - "$work/oci" <<'PY'
import gzip, io, json, pathlib, sys, tarfile
root = pathlib.Path(sys.argv[1])
blob = lambda digest: (root / "blobs" / digest.replace(":", "/")).read_bytes()
manifest = json.loads(blob(json.loads((root / "index.json").read_bytes())["manifests"][0]["digest"]))
with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(manifest["layers"][-1]["digest"])))) as tar:
    print(*sorted(f"{m.name} {m.isdir()}" for m in tar if m.name.startswith("project/")), sep="\n")
PY
  rm -r "$work/oci"
}
theirs() {
  local container
  DOCKER_BUILDKIT=0 dock build --quiet --tag oracle "$project" >/dev/null 2>"$work/err" || fail "docker: $(cat "$work/err")"
  container=$(dock create oracle)
  dock export "$container" | python3 -c 'import io, sys, tarfile
with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())) as tar:
    print(*sorted(f"{m.name} {m.isdir()}" for m in tar if m.name.startswith("project/")), sep="\n")'
  dock rm "$container" >/dev/null
}

number=0
while IFS= read -r -d '%' lines; do
  number=$((number + 1))
  note "lines: ${lines//$'\n'/ · }"
  # What a build of ours writes is not in our image, by our own rule.
  printf '%s\n*.built\n' "$lines" >"$project/.dockerignore"
  theirs >"$work/theirs"
  ours >"$work/ours"
  diff "$work/theirs" "$work/ours" || fail "Docker's files and ours differ"
  [ -s "$work/ours" ] || fail "nothing is left to compare"
done <<'TABLE'
# comment
*/temp*
*/*/temp*
temp?%
*.md
!README*.md
README-secret.md%
*.md
README-secret.md
!README*.md%
**/*.pyc
**/temporary.txt%
/docs/
 ./src/data/../a.py %
src
!src/data/labels.json%
src/*
!src/data
src/data/deep%
*
!src/data
!docs/*.md%
a\*b
\[x\]
\!bang%
[a-c]*
!a[^x]b
odd name
?%
somedir/**
**/deep
abc**
**/foo/bar%
**
!docs%
# only a comment
é*
 #hash%
TABLE
[ "$number" -ge 13 ] || fail "only $number tables were compared"
