#!/usr/bin/env bash
# Mirrors of a registry: asked first, passed over where they fail, never pushed to. A registry behind
# TLS whose authority and client certificate lie in certs.d. A front with a token server, blobs on
# another server, and refusals that say when to come again.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/registry.sh
. "$root/tests/support/registry.sh"
need skopeo openssl docker-registry
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR
export HOME=$work/user XDG_CONFIG_HOME=$work/user/.config DOCKER_CONFIG=$work/docker
containers=$HOME/.config/containers
mkdir -p "$XDG_CONFIG_HOME/mlenv" "$containers/certs.d" "$DOCKER_CONFIG"

certificate() { # certificate NAME SUBJECT: signed by the test's own authority
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$2" -keyout "$work/$1.key" -out "$work/$1.request"
  openssl x509 -req -in "$work/$1.request" -CA "$work/ca.crt" -CAkey "$work/ca.key" -days 2 \
    -CAcreateserial -extfile <(echo "subjectAltName=DNS:$2") -out "$work/$1.cert"
}
{
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout "$work/ca.key" -out "$work/ca.crt"
  certificate server localhost
  certificate client ann
} 2>"$work/openssl.log"

serve_registry() { # serve_registry NAME [TLS-LINE]: sets $port; requests are lines of $work/NAME.log
  port=$(free_port)
  mkdir "$work/$1"
  printf 'version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp:\n  addr: 127.0.0.1:%s\n  secret: test\n%s\n' \
    "$work/$1" "$port" "${2:-}" >"$work/$1.yml"
  start "$work/$1.log" docker-registry serve "$work/$1.yml"
  wait_until 20 grep -q 'listening on' "$work/$1.log"
}
asked() { grep -cE "\"$2" "$work/$1.log" || true; } # asked NAME PATTERN
pull() { # pull REFERENCE: with an empty store; the debug log is $work/log
  drop "$MLENV_STORE"
  "$MLENV" --verbose pull "$1" >"$work/log" 2>&1 || fail "does not pull: $(cat "$work/log")"
}

serve_registry origin "  tls: {certificate: $work/server.cert, key: $work/server.key, clientcas: [$work/ca.crt]}"
origin=localhost:$port
serve_registry mirror
mirror=127.0.0.1:$port
mirror_pid=${started[-1]}
random_image "$work/oci" 3000000
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$mirror/source:v1"
"$MLENV" pull "$mirror/source:v1" >"$work/out"
"$MLENV" tag "$mirror/source:v1" "$origin/team/x:v1"

note "an authority and a client's certificate in certs.d"
failing_with certificate "$MLENV" --json push "$origin/team/x:v1"
certs=$containers/certs.d/$origin
mkdir "$certs"
cp "$work/ca.crt" "$certs/"
failing_with registry "$MLENV" --json push "$origin/team/x:v1" # on loopback it is tried without TLS then
cp "$work/client.cert" "$certs/"
failing_with config-invalid "$MLENV" --json push "$origin/team/x:v1"
cp "$work/client.key" "$certs/"

note "a push goes to the registry, whatever its mirrors"
printf 'mirrors:\n  %s: http://%s\n' "$origin" "$mirror" >"$XDG_CONFIG_HOME/mlenv/config.yaml"
"$MLENV" push "$origin/team/x:v1"
equal "requests about it at the mirror" 0 "$(asked mirror '[A-Z]+ /v2/team/x')"

note "what the mirror lacks, what it has, what it lost"
pull "$origin/team/x:v1"
grep -q "mirror .$mirror/team/x:v1. has no" "$work/log" || fail "$(cat "$work/log")"
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$mirror/team/x:v1"
before=$(asked origin '[A-Z]+ /v2/team/x')
pull "$origin/team/x:v1"
equal "requests to the registry" "$before" "$(asked origin '[A-Z]+ /v2/team/x')"
grep -q "is what the mirror .$mirror/team/x:v1. says" "$work/log" || fail "$(cat "$work/log")"
blob=$(find "$work/mirror" -path '*/blobs/*' -name data -size +2M)
truncate -s -1 "$blob"
printf x >>"$blob"
pull "$origin/team/x:v1"
verify_store
[ "$(asked origin 'GET /v2/team/x/blobs')" -gt 0 ] || fail "the damaged layer came from nowhere"

note "a base, with the registry's tag as its mirror has it; then without the mirror"
rm -r "$work/mirror/docker/registry/v2/blobs" "$work/mirror/docker/registry/v2/repositories"
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$mirror/team/x:v1"
before=$(asked origin '[A-Z]+ /v2/team/x')
mkdir "$work/based"
printf 'name: based\nbase: %s/team/x:v1\n' "$origin" >"$work/based/recipe.yaml"
drop "$MLENV_STORE"
"$MLENV" lock "$work/based/recipe.yaml"
equal "requests to the registry" "$before" "$(asked origin '[A-Z]+ /v2/team/x')"
kill "$mirror_pid"
wait "$mirror_pid" 2>/dev/null || true
pull "$origin/team/x:v1"
grep -q 'is passed over' "$work/log" || fail "$(cat "$work/log")"

note "registries.conf: another mirror by prefix; blocked; mistakes with their places"
rm "$XDG_CONFIG_HOME/mlenv/config.yaml"
serve_registry second
second=127.0.0.1:$port
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$second/cache/x:v1"
cat >"$containers/registries.conf" <<CONF
[[registry]]
prefix = "$origin/team"
location = "$origin/team"
[[registry.mirror]]
location = "$second/cache"
insecure = true
CONF
before=$(asked origin '[A-Z]+ /v2/team/x')
pull "$origin/team/x:v1"
equal "requests to the registry" "$before" "$(asked origin '[A-Z]+ /v2/team/x')"
printf '[[registry]]\nlocation = "%s/team"\nblocked = true\n' "$origin" >"$containers/registries.conf"
failing_with registry-blocked "$MLENV" --json pull "$origin/team/x:v1"
failing_with registry-blocked "$MLENV" --json push "$origin/team/x:v1" "$origin/team/x:v2"
echo 'mirrors: [x]' >"$XDG_CONFIG_HOME/mlenv/config.yaml"
failing_with config-invalid "$MLENV" --json pull "$second/cache/x:v1"
grep -q 'config.yaml:1:10' "$work/err" || fail "no place: $(cat "$work/err")"
rm "$XDG_CONFIG_HOME/mlenv/config.yaml" "$containers/registries.conf"

note "a token server, blobs elsewhere, 429 with seconds and with a date"
front() { # front [--tls CERTIFICATE KEY]: sets $front; requests are lines of $work/front.log
  local port store_port
  port=$(free_port)
  store_port=$(free_port)
  : >"$work/front.log"
  start "$work/front.err" python3 "$root/tests/support/registry_front.py" "$second" "$port" "$store_port" "$work/front.log" "$@"
  front=localhost:$port
  wait_until 10 bash -c ": </dev/tcp/127.0.0.1/$port"
  printf '{"auths": {"%s": {"auth": "%s"}}}' "$front" "$(printf ann:s3cret | base64)" >"$DOCKER_CONFIG/config.json"
}
front
skopeo copy -q --dest-tls-verify=false "oci:$work/oci:v1" "docker://$second/team/x:v1"
failing_with denied "$MLENV" --json pull "$front/team/x:v1" # a login over plain HTTP has to be asked for
equal "logins" "" "$(grep Basic "$work/front.log" || true)"
: >"$work/front.log"
printf 'mirrors:\n  "%s": http://%s\n' "$front" "$front" >"$XDG_CONFIG_HOME/mlenv/config.yaml"
pull "$front/team/x:v1"
verify_store
equal "refusals" 2 "$(grep -c ' 429 ' "$work/front.log")"
equal "logins beside the token server" "" "$(grep -v ' /token ' "$work/front.log" | grep Basic || true)"
equal "logins at the other server" 2 "$(grep -c '^store GET .* 200 -$' "$work/front.log")"
[ "$(grep -c '^store' "$work/front.log")" -eq 2 ] || fail "$(cat "$work/front.log")"
grep -q '^front GET /v2/team/x/manifests/v1 200 Bearer t0ken$' "$work/front.log" || fail "$(cat "$work/front.log")"
if grep -qE 's3cret|t0ken|YW5u' "$work/log"; then fail "prints secrets: $(cat "$work/log")"; fi
pulled=$front/team/x:v1
"$MLENV" push "$pulled" "$front/team/x:v2"
skopeo inspect --tls-verify=false "docker://$second/team/x:v2" >"$work/out" 2>&1 || fail "$(cat "$work/out")"

note "from TLS to plain HTTP no redirect is followed"
rm "$XDG_CONFIG_HOME/mlenv/config.yaml"
front --tls "$work/server.cert" "$work/server.key"
mkdir "$containers/certs.d/$front"
cp "$work/ca.crt" "$containers/certs.d/$front/"
failing_with network "$MLENV" --json push "$pulled" "$front/team/elsewhere:v1"
grep -q 'wants layers sent to `http://127.0.0.1:.*not encrypted' "$work/err" || fail "$(cat "$work/err")"
drop "$MLENV_STORE"
failing_with network "$MLENV" --json pull "$front/team/x:v1"
grep -q 'not encrypted' "$work/err" || fail "$(cat "$work/err")"
equal "requests to the other server" 0 "$(grep -c '^store' "$work/front.log" || true)"
