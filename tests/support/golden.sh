#!/usr/bin/env bash
# golden.sh NAME: runs tests/golden/NAME.cmd (bash; `mlenv` is on PATH) in an empty folder, or a copy
# of tests/golden/NAME.d, and compares stdout, stderr and exit status with NAME.out, NAME.err and
# the first line of NAME.cmd, `# exit: N`. ACCEPT=1 rewrites them instead; review the difference.
set -euo pipefail
cd "$(dirname "$0")/../golden"
name=$1
expected=$PWD/$name

folder=$(mktemp -d)
trap 'chmod -R u+rwX "$folder"; rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/home"
if [ -d "$expected.d" ]; then cp -r "$expected.d" "$folder/work"; else mkdir "$folder/work"; fi
ln -s "$MLENV" "$folder/bin/mlenv"

# What may differ between two machines is replaced: the folder, our version, times.
normalise() {
  sed -E -e "s,$folder/work,DIR,g" -e "s,$folder,TMP,g" \
    -e 's/mlenv [0-9]+\.[0-9]+\.[0-9]+/mlenv VERSION/g' -e 's/\b[0-9]+\.[0-9]+ s\b/N s/g' "$1"
}

status=0
(
  cd "$folder/work"
  exec env -i PATH="$folder/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME="$folder/home" LC_ALL=C.UTF-8 \
    TZ=UTC MLENV_STORE="$folder/store" XDG_CACHE_HOME="$folder/cache" \
    XDG_CONFIG_HOME="$folder/config" bash "$expected.cmd"
) >"$folder/out" 2>"$folder/err" </dev/null || status=$?
normalise "$folder/out" >"$folder/$name.out"
normalise "$folder/err" >"$folder/$name.err"
{
  echo "# exit: $status"
  sed '/^# exit: /d' "$expected.cmd"
} >"$folder/$name.cmd"

if [ "${ACCEPT:-}" = 1 ]; then
  cp "$folder/$name.out" "$folder/$name.err" "$folder/$name.cmd" .
  exit 0
fi
different=0
for part in cmd out err; do
  diff -u --label "expected $name.$part" --label "got $name.$part" \
    "$expected.$part" "$folder/$name.$part" || different=1
done
if [ "$different" = 1 ]; then echo "ACCEPT=1 $0 $name   rewrites them"; fi
exit "$different"
