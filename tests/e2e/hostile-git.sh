#!/usr/bin/env bash
# A run writes to its project, and the next one asks for the state of the code there, on the host:
# nothing that the first one wrote is started, in the repository, in one within it, or while it goes
# on; nothing of another repository is told or passed on.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2034  # for both.sh
long_both=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need git jq python3 busybox runc crun
python3 "$root/tests/support/busybox_image.py" "$work/shell.tar" shell:v1
"$MLENV" load "$work/shell.tar" >"$work/load.log"
mark=$work/ran-on-the-host
export HOME=$work
git config --global user.email a@b
git config --global user.name n

# begin NAME: a repository with a commit, another repository within it, and the working folder there.
begin() {
  mkdir -p "$work/$1/sub"
  cd "$work/$1"
  git init -q -b main .
  (cd sub && git init -q . && echo 1 >s && git add s && git commit -qm sub)
  echo 1 >a.py
  git add a.py
  git -c advice.addEmbeddedRepo=false add sub 2>/dev/null
  git commit -qm project
}
# within RUNTIME SCRIPT: by a run that has the project.
within() { "$MLENV" run --runtime "$1" --no-check --network none shell:v1 -- sh -ec "$2"; }
record() { "$MLENV" --json runs show last | jq -r "$1"; }
told() { [ "$(record '.code != null')" = true ]; }
# not_obeyed WHAT: the next run tells what the code is, and starts nothing. The record's file is
# written by a process of its own.
not_obeyed() {
  "$MLENV" run --no-check --network none shell:v1 -- true
  wait_until 30 told
  [ ! -e "$mark" ] || fail "$1: started on the host: $(cat "$mark")"
}
evil='id >'$mark'; cat'

note "a filter of a repository within the project"
begin filter
within crun 'printf "[filter \"evil\"]\n clean = '"$evil"'\n process = '"$evil"'\n" >>sub/.git/config
  echo "* filter=evil" >sub/.gitattributes; echo 2 >sub/s; touch -d "2020-01-01 00:00:00" sub/s'
not_obeyed "a submodule's filter"
equal "what is changed" '["sub"]' "$(record '.code.changed.value | tojson')"
# The test can fail: git itself obeys.
git status --porcelain >/dev/null 2>&1 || true
[ -e "$mark" ] || fail "git does not start a submodule's filter any more: this tests nothing"
rm "$mark"

note "a monitor, hooks and included settings"
begin monitor
git rm -q --cached sub # a commit with a submodule is nobody's code
echo sub >.git/info/exclude
git commit -qm alone
within runc 'printf "#!/bin/sh\nid >'"$mark"'\ncat\n" >hook; chmod 755 hook
  for r in . sub; do
    for h in post-index-change fsmonitor-watchman query-watchman post-checkout; do cp hook $r/.git/hooks/$h; done
    printf "[core]\n fsmonitor = '"$PWD"'/hook\n hooksPath = '"$PWD"'/sub/.git/hooks\n pager = '"$PWD"'/hook\n[include]\n path = '"$PWD"'/more\n[includeIf \"gitdir:/\"]\n path = '"$PWD"'/more\n[diff]\n external = '"$PWD"'/hook\n" >>$r/.git/config
  done
  printf "[filter \"evil\"]\n clean = '"$PWD"'/hook\n[core]\n sshCommand = '"$PWD"'/hook\n" >more
  echo "* filter=evil diff=evil" >.gitattributes; echo 2 >a.py'
not_obeyed "settings of the repository"
equal "commit" "$(GIT_CONFIG_GLOBAL=/dev/null git rev-parse HEAD)" "$(record .code.commit.value)"
"$MLENV" run --no-check --nodes 1 shell:v1 -- cat a.py >"$work/out" || fail "no job: $(cat "$work/out")"
"$MLENV" run --no-check --nodes 1 --code .@HEAD shell:v1 -- cat a.py >"$work/out" || fail "no job of a commit"
grep -q 1 "$work/out" || fail "not that commit's code: $(cat "$work/out")"
[ ! -e "$mark" ] || fail "started for a job: $(cat "$mark")"
"$MLENV" run --no-check --nodes 1 --code "$PWD/sub" shell:v1 -- cat s >"$work/out" || fail "no job of the inner one"
[ ! -e "$mark" ] || fail "started for a job of the inner one: $(cat "$mark")"

note "while it is read, the settings come and go"
begin race
"$MLENV" run -d --runtime crun --no-check --network none shell:v1 -- sh -c 'cp .git/config plain
  printf "[filter \"evil\"]\n clean = '"$evil"'\n" | cat plain - >armed; echo "* filter=evil" >.gitattributes
  while :; do echo 2 >a.py; cp armed .git/config; cp plain .git/config; done' >"$work/id"
wait_until 20 test -e .gitattributes
for _ in 1 2; do not_obeyed "a race"; done
"$MLENV" stop "$(cat "$work/id")" >/dev/null 2>&1

note "the repository of another folder is neither told nor passed on"
mkdir "$work/private"
(cd "$work/private" && git init -q -b main . && echo topsecret >secret.py && git add . && git commit -qm private)
commit=$(git -C "$work/private" rev-parse HEAD)
begin thief
within crun 'rm -rf .git; echo "gitdir: '"$work"'/private/.git" >.git'
not_obeyed "another repository"
equal "nothing known" null "$(record .code.commit.value)"
record . >"$work/record"
if grep -qE "secret.py|$commit" "$work/record"; then fail "told of another repository"; fi
failing_with no-commit "$MLENV" --json run --no-check --nodes 1 --code .@HEAD shell:v1 -- cat secret.py
within runc 'rm -rf .git; ln -s '"$work"'/private/.git .git'
failing_with no-commit "$MLENV" --json run --no-check --nodes 1 --code .@HEAD shell:v1 -- cat secret.py
begin worktree
within runc 'printf "[core]\n worktree = '"$work"'/private\n" >>.git/config'
not_obeyed "another work tree"
record . >"$work/record"
if grep -q secret.py "$work/record"; then fail "told of another folder"; fi

note "pipes in place of files hold nobody up"
begin pipes
within crun 'for f in HEAD index config packed-refs; do rm -f .git/$f; mkfifo .git/$f; done; mkfifo .mlenvignore'
began=$SECONDS
not_obeyed "pipes"
failing_with not-a-file "$MLENV" --json run --no-check --nodes 1 shell:v1 -- true
rm .mlenvignore
failing_with bad-code "$MLENV" --json run --no-check --nodes 1 shell:v1 -- true
[ $((SECONDS - began)) -lt 40 ] || fail "held up for $((SECONDS - began)) seconds"

note "files of Git LFS have their content, and git-lfs is not asked"
begin lfs
git rm -q --cached sub
rm -rf sub
printf 'weights' >model.bin
oid=$(sha256sum <model.bin | cut -d' ' -f1)
mkdir -p ".git/lfs/objects/${oid:0:2}/${oid:2:2}"
mv model.bin ".git/lfs/objects/${oid:0:2}/${oid:2:2}/$oid"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 7\n' "$oid" >model.bin
git add model.bin
git commit -qm pointer
echo '*.bin filter=lfs -text' >.gitattributes
git add .gitattributes
git commit -qm lfs
printf '#!/bin/sh\necho lfs >>%q\ncat\n' "$mark" >"$work/git-lfs"
chmod 755 "$work/git-lfs"
for name in clean smudge process; do git config --global "filter.lfs.$name" "$work/git-lfs $name"; done
printf 'weights' >model.bin
not_obeyed "git-lfs"
equal "nothing is changed" '[]' "$(record '.code.changed.value | tojson')"
"$MLENV" run --no-check --nodes 1 --code .@HEAD shell:v1 -- cat model.bin >"$work/out"
grep -q weights "$work/out" || fail "no content: $(cat "$work/out")"
[ ! -e "$mark" ] || fail "git-lfs was started: $(cat "$mark")"
rm -r .git/lfs
failing_with no-commit "$MLENV" --json run --no-check --nodes 1 --code .@HEAD shell:v1 -- true
rm "$HOME/.gitconfig"
git config --global user.email a@b
git config --global user.name n

note "held"
