#!/usr/bin/env bash
# Programs, libraries and settings that a run left in its project are not those of the host: mlenv
# starts none of them, whatever PATH and its kin say.
# shellcheck disable=SC2016 # what stands in single quotes is for others
# packages: strace
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2034  # for both.sh
long_both=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need git jq python3 busybox runc crun strace
python3 "$root/tests/support/busybox_image.py" "$work/shell.tar" shell:v1
"$MLENV" load "$work/shell.tar" >"$work/load.log"
mark=$work/ran-on-the-host
mkdir "$work/project"
cd "$work/project"
git init -q .

note "a run plants programs under the names of those that mlenv starts"
runtime=crun
[ "$who" = root ] || runtime=runc
"$MLENV" run --runtime "$runtime" --no-check --network none shell:v1 -- sh -ec '
  mkdir -p .venv/bin bin
  printf "#!/bin/sh\necho \$0 \$* >>'"$mark"'\nexit 1\n" >program
  chmod 755 program
  for p in git runc crun uv python3 prlimit pasta slirp4netns newuidmap newgidmap getsubids nvidia-smi nvidia-ctk \
    docker podman ssh ssh-keygen srun sbatch curl qemu-system-x86_64 docker-credential-x; do
    for at in . .venv/bin bin; do cp program $at/$p; done
  done
  mkdir pip; echo "open(\"'"$mark"'\",\"w\").write(\"pip\")" >pip/__init__.py; cp pip/__init__.py pip/__main__.py
  cp pip/__init__.py sitecustomize.py; cp pip/__init__.py usercustomize.py'
ln -s "$PWD/.venv" "$work/venv"
told() { "$MLENV" --json runs show last | jq -e '.code != null and .host != null'; }
for path in ".:$PATH" "$PWD/.venv/bin:$PATH" "$work/venv/bin:$PATH:"; do
  PATH=$path "$MLENV" run --no-check --network none shell:v1 -- true || fail "no run with PATH=$path"
  wait_until 30 told
  [ ! -e "$mark" ] || fail "started with PATH=$path: $(cat "$mark")"
done
for path in ":bin:$PATH" "$work/project/../project/bin:$PATH"; do
  PATH=$path "$MLENV" --json facts >"$work/facts" || fail "no facts with PATH=$path"
  PATH=$path "$MLENV" run --no-check --nodes 1 shell:v1 -- true || fail "no job with PATH=$path"
  [ ! -e "$mark" ] || fail "started with PATH=$path: $(cat "$mark")"
done
# What is outside of the project is still found.
mkdir "$work/tools"
printf '#!/bin/sh\ntouch %q\nexec %q "$@"\n' "$work/used" "$(command -v crun)" >"$work/tools/crun"
chmod 755 "$work/tools/crun"
PATH=$work/tools:$PATH "$MLENV" run --runtime crun --no-check --network none shell:v1 -- true
[ -e "$work/used" ] || fail "a program outside of the project is not found"

note "libraries: an empty part of LD_LIBRARY_PATH is the working folder"
LD_LIBRARY_PATH=:$PWD:/nowhere strace -f -qq -s 4096 -v -e trace=execve -o "$work/trace" \
  "$MLENV" run --no-check --network none shell:v1 -- true
grep -q 'LD_LIBRARY_PATH=/nowhere"' "$work/trace" || fail "it did not travel: this tests nothing"
if grep 'execve(.*/runc"' "$work/trace" | grep -q "LD_LIBRARY_PATH=:"; then fail "handed on"; fi

note "Python and uv: nothing of the project is imported, nothing of its settings read"
printf 'name: a\nbase: debian:bookworm\npython: "3.11"\npackages: [six]\n' >recipe.yaml
printf '[pip]\nindex-url = "http://127.0.0.1:1/"\n' | tee uv.toml >/dev/null
printf '[tool.uv]\nindex-url = "http://127.0.0.1:1/"\n' >pyproject.toml
# Where uv is to be fetched, by the machine's pip: it fails here, since no server is there.
PYTHONPATH=. PATH=/usr/bin:/bin XDG_CACHE_HOME=$work/cache PIP_INDEX_URL=http://127.0.0.1:1/ PIP_RETRIES=0 \
  "$MLENV" lock recipe.yaml >"$work/out" 2>"$work/err" || true
[ ! -e "$mark" ] || fail "started by Python: $(cat "$mark")"
note "held"
