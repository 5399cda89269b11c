#!/usr/bin/env bash
# `mlenv copy --pull-from`: nodes fetch an image's layers from a registry that is near them, once, and
# give them to each other; the sender's link carries next to nothing. Tokens, TLS, redirects, nodes
# without curl, registries that end, lie, forget tokens or heed no ranges. With MLENV_TEST_LONG=1 also a curl that is
# killed, and a first node of Slurm's without mlenv.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
# shellcheck source=tests/support/random_layers.sh
. "$root/tests/support/random_layers.sh"
need runc jq python3 git curl openssl docker-registry skopeo cc pgrep pkill
need_node_agent
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR

nodes_up 4
with_ssh
mkdir -p "$work/project"
cd "$work/project"
three=node1,node2,node3

# The registry is on node4: a real one on its loopback, and what stands before it.
cat >"$work/registry.yml" <<CONFIG
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: $work/registry}}
http: {addr: "127.0.0.1:5001", secret: test, relativeurls: true}
CONFIG
{
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=test" -keyout "$work/ca.key" -out "$work/ca.pem"
  openssl req -newkey rsa:2048 -nodes -subj /CN=node4 -keyout "$work/key.pem" -out "$work/request.pem"
  openssl x509 -req -in "$work/request.pem" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 2 \
    -CAcreateserial -extfile <(echo subjectAltName=DNS:node4) -out "$work/cert.pem"
} 2>"$work/openssl.log"
start "$work/registry.out" on node4 docker-registry serve "$work/registry.yml"
mode() { printf '%s' "$1" >"$work/mode.new" && mv "$work/mode.new" "$work/mode"; }
mode '{"auth": "none"}'
# front PORT [--tls]: sets $host; its log is $work/front-PORT.
front() {
  local tls=()
  if [ "${2:-}" = --tls ]; then tls=(--tls "$work/cert.pem" "$work/key.pem"); fi
  host=node4:$1
  front_log=$work/front-$1
  : >"$front_log"
  start "$front_log.out" on node4 python3 "$root/tests/support/pulled_registry.py" 127.0.0.1:5001 \
    "${bed_address[node4]}" "$1" "$(($1 + 1))" "$front_log" "$work/mode" "${tls[@]}"
  wait_until 20 grep -q listening "$front_log"
}
# pulled_bytes: of blobs that have left the registry for nodes, which ask for parts of them.
pulled_bytes() { awk '$2 == "GET" && $4 == 206 && /\/blobs\// { sum += $5 } END { print sum + 0 }' "$front_log"; }
head_sent() { on head cat /sys/class/net/eth0/statistics/tx_bytes; }

of() { jq -r ".nodes[] | select(.node == \"$1\") | .$2" "$work/out"; }
sum() { jq "[.nodes[].$1] | add" "$work/out"; }
forget() { for node in node1 node2 node3; do on "$node" rm -rf .local/share/mlenv; done; }
# copied WORD…: to the three nodes, which have nothing of it; each proves it.
copied() {
  forget
  : >"$front_log"
  before=$(head_sent)
  on_head "$MLENV" --json copy small --hosts "$three" --pull-from "$@" </dev/null >"$work/out" 2>"$work/err" ||
    fail "copy: $(cat "$work/out" "$work/err")"
  sent=$(($(head_sent) - before))
  echo "from here $(sum from_here_bytes), from nodes $(sum from_nodes_bytes), from the registry $(sum from_registry_bytes), of $size; its log: $(pulled_bytes); the head's link: $sent"
  sed 's/^/  /' "$work/err"
  for node in node1 node2 node3; do
    equal "$node" copied "$(of "$node" state)"
    # What was spoilt came again.
    grep -q 'has another digest' "$work/err" ||
      equal "$node: bytes" "$size" "$(($(of "$node" from_here_bytes) + $(of "$node" from_nodes_bytes) + $(of "$node" from_registry_bytes)))"
    on "$node" "$MLENV" --json images >"$work/images"
    equal "$node: images" "small:latest $image" "$(jq -r '.images[] | "\(.name) \(.digest)"' "$work/images")"
    on "$node" "$MLENV" store verify >"$work/verify" 2>&1 || fail "$node: $(cat "$work/verify")"
  done
}
# once: each layer left the registry once, and nothing came from the sender.
once() {
  equal "bytes that left the registry" "$size" "$(pulled_bytes)"
  equal "bytes from the registry" "$size" "$(sum from_registry_bytes)"
  equal "bytes from here" 0 "$(sum from_here_bytes)"
  [ "$(sum from_nodes_bytes)" -gt "$size" ] || fail "only $(sum from_nodes_bytes) bytes went between nodes"
  # How much of the nodes' program leaves before a node says that it has it differs.
  [ "$((sent - idle))" -lt $((size / 4)) ] || fail "the sender's link carried $sent bytes, $idle without the image"
}

# job_layers: an image with one program of a single file, which says so when it runs.
job_layers() {
  mkdir -p "$work/layer"
  printf '#include <stdio.h>\nint main(void) { return puts("it runs") < 0; }\n' >"$work/it.c"
  cc -static -o "$work/layer/it" "$work/it.c"
  head -c 3000000 /dev/urandom >"$work/layer/data"
  tar -C "$work/layer" -cf "$work/job.tar" .
  rm -r "$work/layer"
  skopeo copy -q "tarball:$work/job.tar" "oci:$work/job-oci:v1"
}

front 5000
host_plain=$host
note "the registry's image is here, the nodes' program is there"
random_layers "$work/oci" 11 3 0
random_layers "$work/other-oci" 1
job_layers
for one in oci:v1 other-oci:v2 job-oci:v3; do
  on node4 skopeo copy -q --dest-tls-verify=false "oci:$work/${one%:*}:v1" "docker://127.0.0.1:5001/team/x:${one#*:}"
done
image=$(on_head "$MLENV" pull "$host/team/x:v1" --plain-http)
other=$(on_head "$MLENV" pull "$host/team/x:v2" --plain-http)
job_image=$(on_head "$MLENV" pull "$host/team/x:v3" --plain-http)
on_head "$MLENV" tag "$image" small >/dev/null
on_head "$MLENV" tag "$job_image" job >/dev/null
on_head "$MLENV" rm "$host/team/x:v1" "$host/team/x:v2" "$host/team/x:v3" >/dev/null
size=$("$MLENV" --json inspect small | jq .size_bytes)
on_head "$MLENV" copy small --hosts "$three" </dev/null >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
idle=$(head_sent)
on_head "$MLENV" copy small --hosts "$three" </dev/null >"$work/out" 2>"$work/err"
idle=$(($(head_sent) - idle))

note "everybody may pull: each layer leaves the registry once"
copied "$host/team/x:v1" --plain-http
once
python3 "$root/tests/schema/check.py" <"$work/out" >/dev/null
[ "$(wc -l <"$work/err")" -eq 0 ] || fail "it says something: $(cat "$work/err")"
note "the repository alone: the image of the same digest"
forget
on_head "$MLENV" copy small --hosts "$three" --pull-from "$host/team/x" --plain-http </dev/null >"$work/out" 2>"$work/err"
grep -qE '^node1 +[0-9.]+ [kM]B in .* of it from other nodes, [0-9.]+ [kM]?B from the registry$' "$work/out" || fail "$(cat "$work/out")"

note "an image that is not here: its manifest comes here, and nothing of its layers"
forget
: >"$front_log"
before=$(head_sent)
on head env MLENV_STORE="$work/empty" "$MLENV" --json copy train --hosts "$three" --pull-from "$host/team/x:v1" --plain-http </dev/null >"$work/out" 2>"$work/err" ||
  fail "copy: $(cat "$work/out" "$work/err")"
sent=$(($(head_sent) - before))
once
equal "node2's images" "train:latest $image" "$(on node2 "$MLENV" --json images | jq -r '.images[] | "\(.name) \(.digest)"')"

note "what cannot be is said before anything starts"
pulling() { on_head "$MLENV" --json copy small --hosts "$three" --pull-from "$@"; }
forget
failing_with other-image pulling "$host/team/x:v2" --plain-http
grep -qF "$other" "$work/err" || fail "$(cat "$work/err")"
grep -qF "$image" "$work/err" || fail "$(cat "$work/err")"
failing_with not-found pulling "$host/team/x:v9" --plain-http
failing_with not-found pulling "$host/team/y" --plain-http
failing_with network pulling "$host/team/x"
failing_with no-registry pulling team/x
failing_with bad-pull-from pulling localhost:5000/team/x
failing_with other-image on head env MLENV_STORE="$work/empty" "$MLENV" --json copy "train@$other" --hosts "$three" --pull-from "$host/team/x:v1" --plain-http
note "nor does a digest become the name of another image"
failing_with other-image on head env MLENV_STORE="$work/empty" "$MLENV" --json copy "$other" --hosts "$three" --pull-from "$host/team/x:v1" --plain-http
grep -qF "$other was asked for" "$work/err" || fail "$(cat "$work/err")"
mode '{"auth": "basic"}'
mkdir -p "$bed/head/root/.docker"
login() { # login PASSWORD
  printf '{"auths": {"node4:5000": {"auth": "%s"}, "node4:5002": {"auth": "%s"}}}' \
    "$(printf 'ann:%s' "$1" | base64)" "$(printf 'ann:%s' "$1" | base64)" >"$bed/head/root/.docker/config.json"
}
login s3cret
failing_with denied pulling "$host/team/x:v1" --plain-http # no login goes over plain HTTP
login wrong
mode '{"auth": "token"}'
failing_with denied pulling "$host/team/x:v1" --plain-http
[ ! -e "$bed/node1/root/.local/share/mlenv" ] || fail "something came to a node"
login s3cret

note "a node without curl, and others that fetch for it"
mode '{"auth": "none"}'
on node2 mount --bind /dev/null /usr/bin/curl
copied "$host/team/x:v1" --plain-http
once
equal "node2 from the registry" 0 "$(of node2 from_registry_bytes)"
equal "why" "there is no curl" "$(of node2 no_registry)"
equal "one notice" 1 "$(wc -l <"$work/err")"
grep -q 'node `node2` has no curl' "$work/err" || fail "$(cat "$work/err")"
on node2 umount /usr/bin/curl

note "a registry that heeds no ranges"
mode '{"auth": "none", "whole": true}'
copied "$host/team/x:v1" --plain-http
equal "bytes from here" 0 "$(sum from_here_bytes)"

note "connections that break off: nodes go on from the pieces that are there"
mode '{"auth": "none", "cut": 1500000}'
copied "$host/team/x:v1" --plain-http
equal "bytes from here" 0 "$(sum from_here_bytes)"
equal "bytes from the registry" "$size" "$(sum from_registry_bytes)"
[ ! -s "$work/err" ] || fail "it says something: $(cat "$work/err")"

note "a curl that is killed is followed by another; with the copy, however that ends, all of them go"
mode '{"auth": "none", "rate": 3000000}'
curls() { for node in node1 node2 node3; do on "$node" pgrep -x curl || true; done; }
some_curl() { [ -n "$(curls)" ]; }
no_curl() { [ -z "$(curls)" ]; }
kill_curls() {
  wait_until 20 some_curl
  for node in node1 node2 node3; do on "$node" pkill -9 -x curl || true; done
  touch "$work/killed"
}
if [ "$MLENV_TEST_LONG" = 1 ]; then
  start "$work/kill" kill_curls
  copied "$host/team/x:v1" --plain-http
  [ -e "$work/killed" ] || fail "no curl was killed"
  equal "bytes from here" 0 "$(sum from_here_bytes)"
fi
for signal in INT KILL; do
  forget
  on_head "$MLENV" copy small --hosts "$three" --pull-from "$host/team/x:v1" --plain-http </dev/null >"$work/out" 2>"$work/err" &
  copying=$!
  wait_until 20 some_curl
  on head pkill "-$signal" -x mlenv
  status=0
  wait "$copying" || status=$?
  equal "status after SIG$signal" "$([ "$signal" = INT ] && echo 130 || echo 137)" "$status"
  wait_until 20 no_curl
done

note "a registry that lies: all of it comes from here, and is what it should be"
mode '{"auth": "none", "wrong": true}'
copied "$host/team/x:v1" --plain-http
[ "$(sum from_here_bytes)" -ge "$size" ] || fail "not from here: $(cat "$work/out")"
grep -q 'no node fetches from `node4:5000`: what came of `sha256:[0-9a-f]*` has another digest; ' "$work/err" || fail "$(cat "$work/err")"
equal "one notice" 1 "$(wc -l <"$work/err")"

note "a registry that ends in the middle"
mode '{"auth": "none", "rate": 10000000, "die_after": 5000000}'
copied "$host/team/x:v1" --plain-http
[ "$(sum from_registry_bytes)" -gt 0 ] || fail "nothing came from the registry: $(cat "$work/out")"
[ "$(sum from_here_bytes)" -gt 0 ] || fail "nothing came from here: $(cat "$work/out")"
[ "$(sum from_here_bytes)" -lt $((size * 3 / 2)) ] || fail "all came from here: $(cat "$work/out")"
grep -q 'fetches from `node4:5000` no more' "$work/err" || fail "$(cat "$work/err")"
note "and there is nobody else who has it"
mode '{"auth": "none"}'
front 5000
mode '{"auth": "none", "die_after": 5000000}'
forget
failing_with copy-failed on head env MLENV_STORE="$work/empty" "$MLENV" --json copy train --hosts "$three" --pull-from "$host/team/x:v1" --plain-http
grep -q 'nowhere to be had' "$work/err" || fail "$(cat "$work/err")"
[ "$(grep -o '"code":"not-fetched"' "$work/out" | wc -l)" = 3 ] || fail "$(cat "$work/out")"
note "what came of it is kept"
mode '{"auth": "none"}'
front 5000
on_head "$MLENV" --json copy small --hosts "$three" --pull-from "$host/team/x:v1" --plain-http </dev/null >"$work/out" 2>"$work/err"
[ "$(sum had_bytes)" -gt 0 ] || fail "nothing was kept: $(cat "$work/out")"
[ "$(pulled_bytes)" -lt "$size" ] || fail "all of it came again: $(pulled_bytes)"
equal "bytes from here" 0 "$(sum from_here_bytes)"

note "TLS, a login, a token that is forgotten, layers elsewhere; node3 does not know the authority"
front 5002 --tls
cat /etc/ssl/certs/ca-certificates.crt "$work/ca.pem" >"$work/bundle.pem" 2>/dev/null || cp "$work/ca.pem" "$work/bundle.pem"
for node in head node1 node2; do on "$node" mount --bind "$work/bundle.pem" /etc/ssl/certs/ca-certificates.crt; done
printf 's3cret\n%s\nt0ken\n' "$(printf ann:s3cret | base64)" >"$work/secrets"
look_at_processes() {
  while [ ! -e "$work/looked" ]; do
    cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' >"$work/processes" || true
    grep -aF -f "$work/secrets" "$work/processes" || true
    if grep -qaxF -- --config "$work/processes"; then touch "$work/saw-curl"; fi
  done
}
mode '{"auth": "basic"}'
failing_with password-only pulling "$host/team/x:v1"
start "$work/seen" look_at_processes
mode '{"auth": "token", "forget": 4, "rate": 3000000, "elsewhere": "https://node4:5003"}'
copied "$host/team/x:v1"
touch "$work/looked"
once
[ -e "$work/saw-curl" ] || fail "no curl was seen"
[ ! -s "$work/seen" ] || fail "secrets in processes: $(cat "$work/seen")"
if grep -raFl -f "$work/secrets" "$bed"/node[123] "$work/out" "$work/err"; then fail "secrets in files of nodes"; fi
if grep -vE '^other [^ ]+ [^ ]+ [^ ]+ [^ ]+ -$' <(grep '^other' "$front_log"); then fail "a token went elsewhere"; fi
grep -q '^other GET .* 206 ' "$front_log" || fail "nothing came from elsewhere: $(cat "$front_log")"
if grep '^front GET .*/blobs/' "$front_log" | grep -vE 'Bearer t0ken[0-9]+-pull$'; then fail "a token that is good for more"; fi
grep -q '^front GET .*/blobs/.* 401 ' "$front_log" || fail "no token was forgotten: $(cat "$front_log")"
equal "node3 from the registry" 0 "$(of node3 from_registry_bytes)"
grep -q 'node `node3` fetches from `node4:5002` no more: SSL certificate problem' "$work/err" || fail "$(cat "$work/err")"
equal "one notice" 1 "$(wc -l <"$work/err")"

note "jobs by ssh, also in the background and from a job.yaml"
job_size=$("$MLENV" --json inspect job | jq .size_bytes)
mode '{"auth": "none"}' # no login goes over plain HTTP
# The machine's own settings say that this registry has no TLS.
mkdir -p "$bed/head/root/.config/containers"
printf '[[registry]]\nprefix = "node4:5000"\nlocation = "node4:5000"\ninsecure = true\n' >"$bed/head/root/.config/containers/registries.conf"
front_log=$work/front-5000
# ran WORD…: on three nodes, which have nothing of the image.
ran() {
  forget
  : >"$front_log"
  on_head "$MLENV" run --nodes 3 "$@" </dev/null >"$work/out" 2>"$work/err" || fail "the job: $(cat "$work/out" "$work/err")"
}
all_ran() {
  equal "bytes that left the registry" "$job_size" "$(pulled_bytes)"
  equal "ranks" 3 "$(grep -c 'it runs$' "$1")"
}
ran --engine ssh --hosts "$three" --pull-from "$host_plain/team/x:v3" job -- /it
all_ran "$work/out"
printf 'image: job\nnodes: 3\npull-from: %s/team/x\ncommand: [/it]\n' "$host_plain" >job.yaml
on_head "$MLENV" --json run --engine ssh --hosts "$three" --dry-run job.yaml >"$work/out"
equal "a dry run" "$host_plain/team/x" "$(jq -r .job.pull_from "$work/out")"
on_head "$MLENV" run --engine ssh --hosts "$three" --dry-run job.yaml >"$work/out"
grep -qx "layers    nodes fetch them from $host_plain/team/x" "$work/out" || fail "$(cat "$work/out")"
ran --engine ssh --hosts "$three" -d job.yaml
id=$(cat "$work/out")
on_head "$MLENV" wait "$id" >/dev/null 2>"$work/err" || fail "$(cat "$work/err")"
on_head "$MLENV" logs "$id" >"$work/logs" 2>/dev/null
all_ran "$work/logs"
failing_with other-image on_head "$MLENV" --json run --nodes 3 --hosts "$three" --pull-from "$host_plain/team/x:v1" job -- /it
failing_with usage on_head "$MLENV" --json run --pull-from "$host_plain/team/x:v1" job -- /it
on_head "$MLENV" export ssh job.yaml --hosts "$three" >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
grep -q 'the script carries the image' "$work/err" || fail "$(cat "$work/err")"

note "and by Slurm, whose first node asks the registry"
with_slurm
mkdir -p "$bed/node1/root/.docker"
cp "$bed/head/root/.docker/config.json" "$bed/node1/root/.docker/config.json"
# Nodes have stores of their own: what is submitted says nothing of this one.
ran --engine slurm --slurm-option=--exclude=node4 --slurm-option=--export=HOME=/root,PATH="$PATH" \
  --pull-from "$host_plain/team/x:v3" job -- /it
all_ran "$work/out"

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
note "where that has no mlenv, one sentence says so, and the layers come from here"
on node1 mount --bind /dev/null "$MLENV"
ran --engine slurm --slurm-option=--exclude=node4 --slurm-option=--export=HOME=/root,PATH=/usr/bin:/bin \
  --pull-from "$host_plain/team/x:v3" job -- /it
equal "bytes that left the registry" 0 "$(pulled_bytes)"
equal "ranks" 3 "$(grep -c 'it runs$' "$work/out")"
grep -qF 'no node fetches from `node4:5000`: `node1` has no `mlenv` that could ask for a token: ' "$work/out" "$work/err" || fail "$(cat "$work/out" "$work/err")"
