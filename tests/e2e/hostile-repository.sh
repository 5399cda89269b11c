#!/usr/bin/env bash
# A cloned repository whose links, lists and recipes name files of this machine: no line of them is shown or copied, none
# is waited for, and a short Dockerfile cannot fill the memory.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need python3
secret=the-secret-of-the-machine-$$
echo "$secret: [" >"$work/secret.txt"
mkdir "$work/clone"
cd "$work/clone"

# hidden WHAT COMMAND…: fails, tells where, and shows nothing of the secret.
hidden() {
  local what=$1
  shift
  if timeout 30 "$MLENV" "$@" >"$work/said" 2>&1 </dev/null; then fail "$what: it was done"; fi
  if grep -qF "$secret" "$work/said"; then fail "$what: a line of another file is shown: $(cat "$work/said")"; fi
}

note "Links to files elsewhere: no excerpt"
printf 'name: x\nbase: debian:bookworm\n' >recipe.yaml
ln -s "$work/secret.txt" recipe.lock
hidden "the lock" build --locked
rm recipe.lock
ln -s "$work/secret.txt" job.yaml
hidden "job.yaml" run job.yaml
echo "$secret:*:20228:0:99999:7::" >"$work/secret.txt" # no key of it, as a machine's passwords have lines
hidden "job.yaml, by a key" run job.yaml
grep -q 'job.yaml:[0-9]*:' "$work/said" || fail "the place is not told: $(cat "$work/said")"
mv recipe.yaml kept.yaml
ln -s "$work/secret.txt" recipe.yaml
hidden "the recipe" lock
rm recipe.yaml job.yaml
mv kept.yaml recipe.yaml
# A file of the folder's own is quoted, as always.
echo 'nodes: [' >job.yaml
if "$MLENV" run job.yaml 2>"$work/said"; then fail "half a job.yaml was run"; fi
grep -qF 'nodes: [' "$work/said" || fail "its own line is not shown: $(cat "$work/said")"

note "Lists that name files elsewhere: no line is copied"
echo numpy >"$work/clone/own.txt"
printf -- '-r %s\n-r own.txt\n' "$work/secret.txt" >requirements.txt
"$MLENV" init --from requirements.txt --recipe new.yaml >"$work/said" 2>&1
if grep -qF "$secret" new.yaml "$work/said"; then fail "lines of another file were copied"; fi
grep -q numpy new.yaml || fail "the folder's own list was left out: $(cat new.yaml)"

note "A link to a file elsewhere in the place of what is converted: no line is copied"
echo "$secret: x" >"$work/secret.txt"
for name in environment.yml Dockerfile pyproject.toml cog.yaml linked.txt; do
  ln -sf "$work/secret.txt" "$name"
  failing_with source-invalid "$MLENV" --json init --from "$name" --recipe copied.yaml
  if grep -qF "$secret" "$work/out" "$work/err"; then fail "$name: a line of another file is shown"; fi
  [ ! -e copied.yaml ] || fail "$name: a recipe was made of it"
  rm "$name"
done

note "More than a recipe is for"
for words in '"RUN make\n" * 20000' '"RUN pip install a-package-of-a-long-name\n" * 20000' '"RUN make" + " && make x \\\n" * 200000 + " && make\n"'; do
  python3 -c "print('FROM debian:bookworm\n' + $words)" >Dockerfile
  failing_with too-large timeout 30 "$MLENV" --json init --from Dockerfile --recipe big.yaml
done
python3 -c 'print("[project]\nname=\"x\"\ndependencies=[" + ",".join(f"\"p{i}\"" for i in range(50000)) + "]")' >pyproject.toml
failing_with too-large timeout 30 "$MLENV" --json init --from pyproject.toml --recipe big.yaml
rm pyproject.toml

note "Loops in loops"
python3 -c "print('FROM debian:bookworm\nRUN ' + 'for i in 1 2 3 4 5 6 7 8 9 10; do ' * 9 + 'pip install x; ' + 'done; ' * 9)" >Dockerfile
failing_with too-large timeout 30 "$MLENV" --json init --from Dockerfile --recipe big.yaml

note "A Dockerfile whose variables grow"
{
  echo 'FROM debian:bookworm'
  echo 'ENV A0=xxxxxxxxxxxxxxxxxxxxxxxx'
  for i in $(seq 15); do echo "ENV A$i=\$A$((i - 1))\$A$((i - 1))\$A$((i - 1))\$A$((i - 1))"; done
} >Dockerfile
(
  ulimit -v 3000000
  failing_with too-large timeout 30 "$MLENV" --json init --from Dockerfile --recipe big.yaml
)

note "A Python that is a pipe or a device"
mkfifo "$work/pipe"
for file in "$work/pipe" /dev/zero; do
  printf 'name: x\nbase: debian:bookworm\nsources: {python: {url: "file://%s", sha256: %s}}\n' "$file" \
    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 >recipe.yaml
  failing_with not-a-file timeout 30 "$MLENV" --json lock
done
