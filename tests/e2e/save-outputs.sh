#!/usr/bin/env bash
# Images as files: to standard output, into pipes and devices, several in one layout; outputs that
# cannot be written are refused before anything is built. And `build --explain`, which is an answer.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq
small_tree
digest=$image
cd "$work"

note "one value for each --output"
equal "digest" "$digest" "$("$MLENV" build --output docker-archive:a.tar small.yaml)"
"$MLENV" build small.yaml -o oci-archive:b.tar -o docker-archive:c.tar >/dev/null
cmp a.tar c.tar

note "standard output"
"$MLENV" save small docker-archive:- >piped.tar
cmp a.tar piped.tar
"$MLENV" --progress none build small.yaml -o docker-archive:- 2>answer | cmp - a.tar
equal "the answer is aside" "$digest" "$(cat answer)"
"$MLENV" save small docker-archive:/dev/stdout 2>/dev/null | cmp - a.tar
status=0
"$MLENV" save small oci-archive:- docker-archive:- >both 2>/dev/null || status=$?
equal "two archives on one stream" 2 "$status"
equal "nothing came" 0 "$(stat -c %s both)"

note "pipes and devices stay what they are"
mkfifo pipe
cmp pipe a.tar &
reader=$!
"$MLENV" save small docker-archive:pipe
wait "$reader" || fail "other bytes came through the pipe"
[ -p pipe ] || fail "the pipe was replaced"
"$MLENV" save small docker-archive:/dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"

note "two images in one layout"
"$MLENV" tag small other
"$MLENV" save small oci:layout
"$MLENV" save other oci:layout/
equal "names in the layout" "other:latest small:latest" \
  "$(jq -r '[.manifests[].annotations["io.containerd.image.name"]] | sort | join(" ")' layout/index.json)"
(mkdir here && cd here && "$MLENV" --progress plain save small oci:./ 2>&1) | grep -q '^writing \., ' ||
  fail "progress does not say where it writes"

note "refused before anything is built"
refused() { # refused WHY ARGUMENT…
  local why=$1 status=0
  shift
  "$MLENV" "$@" >out 2>err || status=$?
  equal "status of $*" 2 "$status"
  grep -qF "$why" err || fail "$*: $(cat err)"
}
sed 's/six/six, idna/' small.yaml >larger.yaml
echo x >here/file
refused "the folder \`nodir\` does not exist" build larger.yaml -o docker-archive:nodir/a.tar
refused 'an archive is a file' build larger.yaml -o oci-archive:here
mkdir full && echo x >full/thesis
refused 'holds other files' build larger.yaml -o oci:full
[ ! -e larger.lock ] || fail "it was locked although the output was refused"

note "explanation"
"$MLENV" -q build small.yaml --explain >out 2>err
equal "last line" "$digest" "$(tail -n 1 out)"
equal "reused" 4 "$(grep -c '^reused ' out)"
[ ! -s err ] || fail "-q is not quiet: $(cat err)"
sed -i 's/six/six, idna/' small.yaml
"$MLENV" -q build small.yaml --explain >out
grep -q '^made .*since the last build: + idna ' out || fail "no reason: $(cat out)"
"$MLENV" --json build small.yaml --explain 2>/dev/null | jq -e .steps >/dev/null

note "Ctrl-C"
mkfifo slow
interrupted() { # interrupted SIGNAL BEGUN ARGUMENT…: once the file BEGUN is there
  local status=0 signal=$1 begun=$2 job
  shift 2
  rm -f "$begun"
  env --default-signal=INT "$MLENV" "$@" >out 2>err &
  job=$!
  wait_until 60 test -e "$begun"
  kill -s "$signal" "$job"
  wait "$job" || status=$?
  equal "status after $signal" $((128 + $(kill -l "$signal"))) "$status"
  equal "said after $signal" 'interrupted; the same command goes on from here' "$(tail -n 1 err)"
}
# Builds that wait for their output's reader, and a registry that never answers.
interrupted INT small.built build small.yaml -o docker-archive:slow
interrupted TERM small.built build small.yaml -o docker-archive:slow
port=$(free_port)
start silent.log python3 -c 'import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
open("listening", "w").close()
connections = []
while True:
    connections.append(server.accept())
    open("asked", "w").close()' "$port"
wait_until 20 test -e listening
interrupted INT asked pull "127.0.0.1:$port/team/x:v1"
interrupted TERM asked push small "127.0.0.1:$port/team/x:v1"

note "Ctrl-C ends programs that mlenv waits for"
cat >"$programs/git" <<'END'
#!/bin/sh
echo $$ >"$WORK/git.new" && mv "$WORK/git.new" "$WORK/git.pid"
exec sleep 1000
END
chmod +x "$programs/git"
sed 's/packages: .*/packages: ["x @ git+https:\/\/127.0.0.1\/x@main"]/' small.yaml >git.yaml
export WORK=$work
PATH=$programs:$PATH interrupted INT git.pid lock git.yaml
wait_until 10 sh -c "! grep -q sleep /proc/$(cat git.pid)/cmdline"
verify_store
