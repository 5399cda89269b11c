#!/usr/bin/env bash
# Proxies that refuse, want a login, lie or never end, and addresses of proxies that cannot be read: errors that say
# what to do, and nobody's password. Files of certificates that are cut, absent, pipes, or wait for a passphrase: no
# plain HTTP in the place of TLS. What a registry's refusal tells of logins. Other tools' files that block a registry.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2034  # for both.sh
long_both=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need openssl python3 script
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR NETRC http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config DOCKER_CONFIG=$work/docker
containers=$XDG_CONFIG_HOME/containers
mkdir -p "$containers" "$DOCKER_CONFIG"

# says CODE WORDS COMMAND…: fails with that code, saying these words, within 20 seconds, and without the password.
says() {
  local code=$1 words=$2 status=0
  shift 2
  timeout -k 1 20 "$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
  if [ "$status" = 124 ] || [ "$status" = 137 ]; then fail "no end: $*"; fi
  [ "$status" -ne 0 ] || fail "done, instead of $code: $*"
  if grep -q s3cret "$work/err" "$work/out"; then fail "tells the password: $*: $(cat "$work/err")"; fi
  grep -qF "\"code\":\"$code\"" "$work/err" || fail "not $code: $*: $(cat "$work/err")"
  grep -qF -- "$words" "$work/err" || fail "does not say \`$words\`: $*: $(cat "$work/err")"
}
pull=("$MLENV" --json --verbose pull)

note "a proxy that says no is not asked again, and the error says what helps"
proxy=$(free_port)
start "$work/proxy" python3 "$root/tests/support/hostile_proxy.py" "$proxy" "$work/asked"
wait_until 10 bash -c ": </dev/tcp/127.0.0.1/$proxy"
through() { # through MODE CODE WORDS REQUESTS [VARIABLE URL]
  : >"$work/asked"
  says "$2" "$3" env "${5:-https_proxy}=http://$1:s3cret@127.0.0.1:$proxy" "${pull[@]}" registry.example/x:v1 "${@:6}"
  equal "requests, $1" "$4" "$(wc -l <"$work/asked")"
}
through login network 'put user and password into the proxy' 1
through login network 'put user and password into the proxy' 1 http_proxy --plain-http
through refuse network 'name `registry.example` in NO_PROXY' 1
through redirect network 'the proxy answered 302' 1
through later network 'the proxy answered 403' 2
for mode in garbage heads continues; do through "$mode" network 'after 3 tries' 3; done

note "an address of a proxy that cannot be read is in no message"
for address in http://me:s3cret@host:notaport ftp://me:s3cret@host me:s3cret@host:99999 "http://me:'s3cret@host:x" 'http://me:s3cret@ho st:1'; do
  says network "the proxy's address in HTTPS_PROXY" env https_proxy="$address" "${pull[@]}" registry.example/x:v1
done

note "files of certificates"
{
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout "$work/ca.key" -out "$work/ca.pem"
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout "$work/other.key" -out "$work/other.pem"
  openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$work/key" -out "$work/request"
  openssl x509 -req -in "$work/request" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 2 -CAcreateserial \
    -extfile <(echo subjectAltName=DNS:localhost) -out "$work/cert"
  openssl rsa -aes128 -passout pass:s3cret -in "$work/key" -out "$work/locked.key"
} 2>"$work/openssl.log"
plain=$(free_port)
start "$work/plain" python3 "$root/tests/support/hostile_registry.py" "$plain" "$work/log"
secure=$(free_port)
start "$work/secure" python3 "$root/tests/support/hostile_registry.py" "$secure" "$work/log" --tls "$work/cert" "$work/key"
wait_until 10 bash -c ": </dev/tcp/127.0.0.1/$plain && : </dev/tcp/127.0.0.1/$secure"
image=localhost:$secure/ok/x:v1
head -c 600 "$work/ca.pem" >"$work/cut.pem"
: >"$work/empty.pem"
truncate -s 3G "$work/huge.pem"
mkfifo "$work/pipe.pem"
for variable in CURL_CA_BUNDLE SSL_CERT_FILE; do
  for file in cut empty; do
    says certificate "where $variable and" env "$variable=$work/$file.pem" "${pull[@]}" "$image"
  done
  says absent "certificates that $variable names" env "$variable=$work/absent.pem" "${pull[@]}" "$image"
  says not-a-file "is a pipe" env "$variable=$work/pipe.pem" "${pull[@]}" "$image"
  says too-large "certificates that $variable names" env "$variable=$work/huge.pem" "${pull[@]}" "$image"
  env "$variable=$work/ca.pem" "$MLENV" pull "$image" >/dev/null
  drop "$MLENV_STORE"
done
says certificate 'in CURL_CA_BUNDLE' env CURL_CA_BUNDLE="$work/other.pem" SSL_CERT_FILE="$work/ca.pem" "${pull[@]}" "$image"
folder=$containers/certs.d/localhost:$secure
mkdir -p "$folder"
cp "$work/cut.pem" "$folder/ca.crt"
says certificate 'certs.d' "${pull[@]}" "$image"
cp "$work/ca.pem" "$folder/ca.crt"
cp "$work/cert" "$folder/me.cert"
mkfifo "$folder/me.key"
says not-a-file 'reading the key' "${pull[@]}" "$image"
rm "$folder/me.key"
cp "$work/cut.pem" "$folder/me.key"
says certificate 'without a passphrase' "${pull[@]}" "$image"
cp "$work/locked.key" "$folder/me.key"
status=0
timeout -k 1 20 script -qec "$MLENV --json pull $image" "$work/typed" </dev/null >/dev/null || status=$?
[ "$status" != 124 ] || fail "waits for a passphrase"
grep -q 'without a passphrase' "$work/typed" || fail "$(cat "$work/typed")"
rm -r "$folder"

note "a proxy with TLS is checked with the same authorities"
says network 'the proxy answered 403' env SSL_CERT_FILE="$work/ca.pem" https_proxy="https://me:s3cret@localhost:$secure" "${pull[@]}" registry.example/x:v1

note "refusals tell which login was used"
at=localhost:$plain
says not-found "no login was sent: \`$at\` has not asked for one" "${pull[@]}" "$at/hidden/x:v1" --plain-http
says denied "\`$at\` would have to answer 401" "${pull[@]}" "$at/closed/x:v1" --plain-http
says denied "docker login $at" "${pull[@]}" "$at/basic/x:v1" --plain-http
printf '{"auths": {"%s": {"auth": "%s"}}}' "$at" "$(printf ann:s3cret | base64)" >"$DOCKER_CONFIG/config.json"
says denied "no login was sent: \`$at\` has not asked for one" "${pull[@]}" "$at/closed/x:v1" --plain-http
says not-found "the login of \`ann\` in" "${pull[@]}" "$at/lacks/x:v1" --plain-http

note "a file that blocks a registry is not passed over for its size or kind"
conf=$containers/registries.conf
printf '[[registry]]\nlocation = "%s"\nblocked = true\n' "$at" >"$conf"
says registry-blocked "$conf" "${pull[@]}" "$at/ok/x:v1"
head -c 2000000 /dev/zero | tr '\0' '#' >>"$conf"
says too-large "$conf" "${pull[@]}" "$at/ok/x:v1"
rm "$conf"
mkfifo "$conf"
says not-a-file "$conf" "${pull[@]}" "$at/ok/x:v1"
rm "$conf"
printf '[[registry]]\nprefix = "%s"\nlocation = "me:s3cret@127.0.0.1/../x"\n' "$at" >"$conf"
says config-invalid 'which is no reference' "${pull[@]}" "$at/ok/x:v1"
