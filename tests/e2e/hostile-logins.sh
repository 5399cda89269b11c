#!/usr/bin/env bash
# Logins go to whom they were given for, once that one has asked, and not over plain HTTP: ~/.netrc with its
# `default`, docker's config.json, logins in addresses. Servers that ask without need, redirect, name token
# servers and upload places elsewhere; an archive, an index and a repository over plain HTTP; a proxy.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2034  # for both.sh
long_both=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need openssl git python3
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR NETRC http_proxy https_proxy HTTP_PROXY HTTPS_PROXY no_proxy NO_PROXY
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config DOCKER_CONFIG=$work/docker
mkdir -p "$XDG_CONFIG_HOME/mlenv" "$DOCKER_CONFIG"
log=$work/log

server() { # server [WORD…]: sets $port
  port=$(free_port)
  start "$work/server.$port" python3 "$root/tests/support/hostile_registry.py" "$port" "$log" "$@"
  wait_until 10 bash -c ": </dev/tcp/127.0.0.1/$port"
}
server
a=$port
server
b=$port
server --address 0.0.0.0
open=$port
asked() { grep -c "$1" "$log" || true; } # asked PATTERN
# none_sent WHAT: there were requests, and no login in any of them.
none_sent() {
  [ -s "$log" ] || fail "$1: nothing was asked: $(cat "$work/err")"
  if grep -vE ' - -$' "$log"; then fail "$1: a login was sent"; fi
  : >"$log"
}
tries() { "$@" </dev/null >"$work/out" 2>"$work/err" || true; }

note "netrc and its default, unasked: a registry, and where its blobs lie"
printf 'machine 127.0.0.1 login alice password INTRANETPW\nmachine localhost login bob password INTRANETPW\ndefault login anyone password DEFAULTSECRET\n' >"$HOME/.netrc"
chmod 600 "$HOME/.netrc"
"$MLENV" pull "127.0.0.1:$a/ok/x:v1" >/dev/null
none_sent "a registry that asks for nothing"
drop "$MLENV_STORE"
tries "$MLENV" pull "localhost:$a/moved.$b/x:v1"
[ "$(asked "^$b GET /basic/stolen")" -gt 0 ] || fail "no redirect was followed: $(cat "$work/err")"
none_sent "where blobs are redirected to"
note "when asked, it is not for registries"
failing_with denied "$MLENV" --json pull "127.0.0.1:$a/basic/x:v1" --plain-http
none_sent "a registry that asks"
note "over plain HTTP: Debian archives, NVIDIA's index, a repository"
for host in "127.0.0.1:$a" "0.0.0.0:$open"; do
  printf 'name: x\nbase: debian:bookworm\nsystem: [git]\nsources: {debian: [{uri: "http://%s/basic", suite: bookworm}]}\n' "$host" >"$work/recipe.yaml"
  tries "$MLENV" lock "$work/recipe.yaml"
  none_sent "an archive at $host"
  tries "$MLENV" data update --from "http://$host/basic"
  none_sent "an index at $host"
  grep -q 'plain HTTP' "$work/err" || fail "does not say why: $(cat "$work/err")"
  tries "$MLENV" data update --from "http://$host/moved.$b"
  none_sent "an index that moved from $host"
  printf 'name: x\nbase: debian:bookworm\npackages: ["p @ git+http://%s/basic/r"]\n' "$host" >"$work/git.yaml"
  tries env XDG_CACHE_HOME="$work/cache" GIT_CONFIG_NOSYSTEM=1 "$MLENV" lock "$work/git.yaml"
  [ "$(asked '/basic/r/info/refs')" -gt 0 ] || fail "git did not ask: $(cat "$work/err")"
  none_sent "a repository at $host"
done

note "docker's login over plain HTTP: not unasked, not beyond loopback, not to other servers"
login() { printf '{"auths": {"%s": {"auth": "%s"}}}' "$1" "$(printf ann:s3cret | base64)" >"$DOCKER_CONFIG/config.json"; }
login "127.0.0.1:$a"
failing_with denied "$MLENV" --json pull "127.0.0.1:$a/basic/x:v1"
grep -q 'plain-http' "$work/err" || fail "does not say what helps: $(cat "$work/err")"
none_sent "plain HTTP that nobody asked for"
"$MLENV" pull "127.0.0.1:$a/realm.$b/x:v1" --plain-http >/dev/null 2>&1 # as anybody may
[ "$(asked "^$b GET /token/give")" -gt 0 ] || fail "no token was fetched: $(cat "$log")"
none_sent_to_b() { if grep "^$b " "$log" | grep -vE ' - -$'; then fail "$1"; fi; }
none_sent_to_b "a token server elsewhere got the login"
: >"$log"
login "0.0.0.0:$open"
failing_with denied "$MLENV" --json pull "0.0.0.0:$open/basic/x:v1" --plain-http
none_sent "plain HTTP beyond loopback"
printf 'mirrors:\n  "0.0.0.0:%s": http://0.0.0.0:%s\n' "$open" "$open" >"$XDG_CONFIG_HOME/mlenv/config.yaml"
failing_with denied "$MLENV" --json pull "0.0.0.0:$open/basic/x:v1"
none_sent "plain HTTP beyond loopback, by a file"
note "asked for on loopback, by a word and by a file: to the registry alone, after its challenge"
login "127.0.0.1:$a"
drop "$MLENV_STORE"
"$MLENV" pull "127.0.0.1:$a/basic/x:v1" --plain-http >/dev/null
equal "first request" "$a GET /v2/basic/x/manifests/v1 - -" "$(head -n 1 "$log")"
[ "$(asked 'Basic_')" -gt 0 ] || fail "no login: $(cat "$log")"
: >"$log"
printf 'mirrors:\n  "127.0.0.1:%s": http://127.0.0.1:%s\n' "$a" "$a" >"$XDG_CONFIG_HOME/mlenv/config.yaml"
drop "$MLENV_STORE"
"$MLENV" pull "127.0.0.1:$a/basic/x:v1" >/dev/null
[ "$(asked 'Basic_')" -gt 0 ] || fail "no login: $(cat "$log")"
: >"$log"
tries "$MLENV" pull "127.0.0.1:$a/moved-basic.$b/x:v1"
none_sent_to_b "a login went to where blobs lie"
"$MLENV" tag "127.0.0.1:$a/basic/x:v1" "127.0.0.1:$a/elsewhere.$b/y:v1" >/dev/null
tries "$MLENV" push "127.0.0.1:$a/elsewhere.$b/y:v1"
[ "$(asked "^$b PUT /basic/upload")" -gt 0 ] || fail "nothing was uploaded elsewhere: $(cat "$work/err")"
none_sent_to_b "a login went to where uploads go on"
: >"$log"

note "with TLS, after a challenge, ~/.netrc is what it should be; a certificate says what is wrong with it"
{
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout "$work/ca.key" -out "$work/ca.pem"
  for name in localhost other.example; do
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$work/$name.key" -out "$work/request.pem"
    openssl x509 -req -in "$work/request.pem" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days "$([ "$name" = localhost ] && echo 2 || echo 1)" \
      -CAcreateserial -extfile <(echo "subjectAltName=DNS:$name") -out "$work/$name.pem"
  done
  openssl x509 -req -in "$work/request.pem" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days -1 \
    -CAcreateserial -extfile <(echo subjectAltName=DNS:localhost) -out "$work/old.pem"
} 2>"$work/openssl.log"
server --tls "$work/localhost.pem" "$work/localhost.key"
secure=$port
failing_with certificate "$MLENV" --json data update --from "https://localhost:$secure/basic"
grep -q SSL_CERT_FILE "$work/err" || fail "unknown authority: $(cat "$work/err")"
export SSL_CERT_FILE=$work/ca.pem
tries "$MLENV" data update --from "https://localhost:$secure/basic"
equal "unasked, then asked" 1 "$(grep -A1 -E "^$secure GET /basic[^ ]* - -\$" "$log" | grep -c "Basic_$(printf bob:INTRANETPW | base64)" || true)"
: >"$log"
tries "$MLENV" data update --from "https://localhost:$secure/ok"
none_sent "an index with TLS that asks for nothing"
note "who hides by 403 or 404 and never asks gets no login, and the error says that there is one"
for mode in hidden closed; do
  failing_with http-status "$MLENV" --json data update --from "https://localhost:$secure/$mode"
  grep -q '`~/.netrc` has a login for `localhost`, which was held back' "$work/err" || fail "$mode: $(cat "$work/err")"
  grep -q 'WWW-Authenticate: Basic' "$work/err" || fail "$mode: $(cat "$work/err")"
  printf 'name: x\nbase: debian:bookworm\nsystem: [git]\nsources: {debian: [{uri: "https://localhost:%s/%s", suite: bookworm}]}\n' \
    "$secure" "$mode" >"$work/recipe.yaml"
  failing_with http-status "$MLENV" --json lock "$work/recipe.yaml"
  grep -q 'which was held back' "$work/err" || fail "$mode, an archive: $(cat "$work/err")"
  none_sent "a server that does not ask, $mode"
done
failing_with http-status "$MLENV" --json data update --from "https://ann:s3cret@localhost:$secure/hidden"
grep -q 'the address has a login for `localhost`' "$work/err" || fail "$(cat "$work/err")"
printf 'default login anyone password DEFAULTSECRET\n' >"$HOME/.netrc"
failing_with http-status "$MLENV" --json data update --from "https://localhost:$secure/hidden"
if grep -q 'held back' "$work/err"; then fail "of default: $(cat "$work/err")"; fi
none_sent "a server that does not ask"
printf 'machine localhost login bob password INTRANETPW\n' >"$HOME/.netrc"
note "nor does who is redirected to"
tries "$MLENV" data update --from "https://localhost:$secure/moved.$b"
none_sent_to_b "the netrc login went along a redirect"
: >"$log"
server --tls "$work/other.example.pem" "$work/other.example.key"
failing_with certificate "$MLENV" --json data update --from "https://localhost:$port/basic"
grep -q 'DNS:other.example' "$work/err" || fail "wrong name: $(cat "$work/err")"
if grep -q SSL_CERT_FILE "$work/err"; then fail "wrong name: $(cat "$work/err")"; fi
server --tls "$work/old.pem" "$work/other.example.key"
failing_with certificate "$MLENV" --json data update --from "https://localhost:$port/basic"
grep -q 'clock' "$work/err" || fail "expired: $(cat "$work/err")"
if grep -q SSL_CERT_FILE "$work/err"; then fail "expired: $(cat "$work/err")"; fi
: >"$log"

note "a proxy gets its own login, and none of the server's"
printf 'machine index.example login ann password INTRANETPW\n' >"$HOME/.netrc"
tries env https_proxy="http://me:pw@127.0.0.1:$a" "$MLENV" data update --from https://ann:s3cret@index.example/x
grep -q "^$a CONNECT index.example:443 - Basic_$(printf me:pw | base64)\$" "$log" || fail "no CONNECT: $(cat "$log" "$work/err")"
if grep -v ' - Basic_' "$log"; then fail "a login was sent"; fi
