#!/usr/bin/env bash
# Another user of the machine reads neither the code of a job nor what a script of it is given: not in
# the store, not in files beside a script, not in arguments of processes.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need git jq python3 busybox runc crun setpriv
need_root
need_node_agent
umask 0 # as some machines have it
python3 "$root/tests/support/busybox_image.py" "$work/shell.tar" shell:v1
"$MLENV" load "$work/shell.tar" >"$work/load.log"
stranger() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
# unread TEXT FOLDER…: none of their files that a stranger may read holds it, packed or not.
unread() {
  local text=$1 file
  shift
  stranger find "$@" -type f -readable 2>/dev/null >"$work/readable" || true
  while read -r file; do
    if stranger grep -qaF -- "$text" "$file" 2>/dev/null; then fail "everybody reads \`$text\` in $file"; fi
  done <"$work/readable"
}

note "the code of a job, in a project that is its owner's alone"
mkdir -m 700 "$work/project"
cd "$work/project"
echo "print('private algorithm')" >model.py
chmod 600 model.py
"$MLENV" run --no-check --nodes 1 shell:v1 -- cat model.py >"$work/out"
grep -q 'private algorithm' "$work/out" || fail "the job has not its code: $(cat "$work/out")"
unread 'private algorithm' "$MLENV_STORE"
grep -rqaF 'private algorithm' "$MLENV_STORE/blobs" || fail "the code is nowhere: this tests nothing"
# One that was stored before modes were kept is mended when it is taken again.
blob=$(grep -rlaF 'private algorithm' "$MLENV_STORE/blobs")
chmod 644 "$blob"
"$MLENV" run --no-check --nodes 1 shell:v1 -- true
equal "mode" 600 "$(stat -c %a "$blob")"
verify_store

note "the variables of a run"
HF_TOKEN=hf_verysecret "$MLENV" run -d --no-check --network none -e HF_TOKEN shell:v1 -- sleep 60 >"$work/id"
unread hf_verysecret "$MLENV_STORE"
"$MLENV" stop "$(cat "$work/id")" >/dev/null 2>&1

note "of an ordinary user, whose home others may enter: code, variables, a script"
user_store
cp "$(dirname "$MLENV")"/mlenv-* "$work/bin/"
as_root chmod 755 "$user_home"
as_root install -d -m 700 -o "$user_id" -g "$user_id" "$user_home/project"
m() { as_user MLENV_STORE="$user_home/store" "${given[@]}" sh -c 'umask 0; cd "$HOME/project" && exec mlenv "$@"' - "$@"; }
given=()
as_user sh -c 'umask 077; cd "$HOME/project"; echo "print(\"private algorithm\")" >model.py; echo topsecret >.npmrc'
m run --no-check --nodes 1 shell:v1 -- sh -c 'cat model.py; ls -A' >"$work/out" 2>"$work/err"
grep -q 'private algorithm' "$work/out" || fail "the user's job has not its code: $(cat "$work/out" "$work/err")"
if grep -q npmrc "$work/out"; then fail "the user's secret travels"; fi
given=(HF_TOKEN=hf_verysecret)
for runtime in crun runc; do
  m run -d --runtime "$runtime" --name "with-$runtime" --no-check --network none -e HF_TOKEN shell:v1 -- sleep 60 >/dev/null
done
m export ssh shell:v1 --hosts node1 -e HF_TOKEN -o train.sh -- true >"$work/out" 2>&1
equal "modes of the user's script" "700 700 600" "$(as_root stat -c %a "$user_home/project/train.sh" "$user_home/project/train.d" \
  "$user_home/project/train.d/code.tar" | xargs)"
as_root chmod 755 "$user_home/project" # so that the modes of what is in it are what holds
unread 'private algorithm' "$user_home"
unread hf_verysecret "$user_home"
as_root grep -rqaF 'private algorithm' "$user_home/store/blobs" || fail "the user's code is nowhere: this tests nothing"
for runtime in crun runc; do m stop --time 0s "with-$runtime" >/dev/null; done

note "names of secrets, in any case, and of copies"
for name in .npmrc .envrc kubeconfig credentials.json terraform.tfstate .env.bak ID_RSA key.PEM id_rsa.old '.env copy' \
  .env.production 'tls.pem~' 'credentials copy.json'; do
  echo "topsecret $name" >"$name"
done
echo plain >.env.example
"$MLENV" run --no-check --nodes 1 shell:v1 -- ls -A >"$work/out" 2>"$work/err"
equal "what travels" ".env.example model.py" "$(LC_ALL=C sed 's/^.*: //' "$work/out" | sort | xargs)"
grep -q 'travels without' "$work/err" || fail "not told: $(cat "$work/err")"
printf 'name: withfiles\nbase: oci-archive:%s\nfiles: {.: /app}\n' "$work/shell.tar" >"$work/project/app.yaml"
if "$MLENV" build app.yaml >"$work/out" 2>"$work/err"; then
  "$MLENV" run --no-check --no-project withfiles -- sh -c 'ls -A /app' >"$work/out"
  if grep -qE 'npmrc|RSA|PEM|tfstate|copy|kube' "$work/out"; then fail "in the image: $(cat "$work/out")"; fi
  grep -q 'left out of the image' "$work/err" || fail "not told: $(cat "$work/err")"
else
  fail "no image: $(cat "$work/err")"
fi

note "a script, what lies beside it, and what is packed next"
cd "$work/project"
"$MLENV" export ssh shell:v1 --hosts node1 --ranks-per-node 2 -e HF_TOKEN=hf_verysecret -e PLAIN=seen \
  -e INDEX=https://me:loginword@host/ -o train.sh -- sh -c 'echo "$HF_TOKEN $PLAIN $INDEX"; sleep 4' >"$work/out" 2>"$work/err"
grep -q 'does not hold the value of `HF_TOKEN`, `INDEX`' "$work/err" || fail "not told: $(cat "$work/err")"
if grep -rqE 'hf_verysecret|loginword' train.sh train.d; then fail "the script holds a secret"; fi
equal "modes" "700 700 600" "$(stat -c %a train.sh train.d train.d/code.tar | xargs)"
unread 'private algorithm' train.d
"$MLENV" export slurm shell:v1 -e HF_TOKEN=hf_verysecret -- true >"$work/slurm.sh" 2>"$work/err"
"$MLENV" export mpi shell:v1 -e HF_TOKEN=hf_verysecret -- true >"$work/mpi.sh" 2>"$work/err"
if grep -q hf_verysecret "$work/slurm.sh" "$work/mpi.sh"; then fail "a script holds a secret"; fi
if command -v shellcheck >/dev/null; then shellcheck --severity=style train.sh "$work/slurm.sh" "$work/mpi.sh"; fi
before=$(sha256sum <train.d/code.tar)
"$MLENV" export ssh shell:v1 --hosts node1 -o next.sh -- true >"$work/out" 2>&1
tar -tf next.d/code.tar >"$work/out"
if grep -q 'train.d/' "$work/out"; then fail "the files of a script are code of the next"; fi
[ -n "$before" ]

note "arguments of processes, of a script by ssh and of a job"
umask 022 # sshd wants it
nodes_up 1
with_ssh
# Each process's arguments, as everybody sees them, until there is a file `watched`; but those of the
# programs by which this test itself hands the secret over and looks for it.
cat >"$work/watch.py" <<'PYTHON'
import glob, os, sys
end, out = sys.argv[1:]
secrets, own, seen = (b"hf_very" + b"secret", b"login" + b"word"), (b"env", b"nsenter", b"setpriv", b"grep"), set()
while not os.path.exists(end):
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read()
        except OSError:
            continue
        if any(one in words for one in secrets) and os.path.basename(words.split(b"\0")[0]) not in own:
            seen.add(words)
with open(out, "wb") as file:
    file.write(b"\n".join(seen))
PYTHON
watch_arguments() {
  python3 "$work/watch.py" "$work/watched" "$work/arguments" &
  watcher=$!
}
watched() {
  touch "$work/watched"
  wait "$watcher"
  rm "$work/watched"
}
seen() { # seen WHAT: the secret was in nobody's arguments
  watched
  [ ! -s "$work/arguments" ] || fail "$1: everybody saw $(tr '\0' ' ' <"$work/arguments" | grep -aE 'hf_very|login' | head -n 3)"
}
watch_arguments
sh -c 'sleep 1; :' hf_verysecret
watched
[ -s "$work/arguments" ] || fail "arguments are not seen: this tests nothing"
watch_arguments
on head env HF_TOKEN=hf_verysecret INDEX=https://me:loginword@host/ bash "$work/project/train.sh" >"$work/out" 2>"$work/err" ||
  fail "the script fails: $(cat "$work/out" "$work/err")" &
job=$!
wait_until 30 grep -q hf_verysecret "$work/out"
wait "$job"
equal "ranks have it" 2 "$(grep -c 'hf_verysecret seen https://me:loginword@host/' "$work/out")"
seen "a script by ssh"
watch_arguments
HF_TOKEN=hf_verysecret "$MLENV" run --no-check --nodes 1 -e HF_TOKEN shell:v1 -- sh -c 'echo "$HF_TOKEN"; sleep 1' >"$work/out" 2>&1
grep -q hf_verysecret "$work/out" || fail "the job has it not: $(cat "$work/out")"
for runtime in runc crun; do
  HF_TOKEN=hf_verysecret "$MLENV" run --runtime "$runtime" --no-check --network none -e HF_TOKEN shell:v1 -- sh -c 'sleep 1'
done
seen "jobs and runs"
note "held"
