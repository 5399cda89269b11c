#!/usr/bin/env bash
# A registry behind TLS with a private certificate authority and a password, the login in docker's
# file and kept by a credential helper.
# packages: apache2-utils pass
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/registry.sh
. "$root/tests/support/registry.sh"
need skopeo openssl htpasswd pass gpg apt-get
# Of a package that would bring a desktop's keyring daemon, the one program.
helpers=$XDG_CACHE_HOME/docker-credential-helpers
if [ ! -x "$helpers/usr/bin/docker-credential-pass" ]; then
  (cd "$work" && apt-get -qq download golang-docker-credential-helpers) >"$work/apt.log" 2>&1 ||
    fail "no credential helper: $(cat "$work/apt.log")"
  dpkg-deb -x "$work"/golang-docker-credential-helpers_*.deb "$work/helpers"
  mv -T "$work/helpers" "$helpers" 2>/dev/null || [ -x "$helpers/usr/bin/docker-credential-pass" ]
fi
cp "$helpers/usr/bin/docker-credential-pass" "$programs/"
export PATH=$programs:$PATH
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR
export DOCKER_CONFIG=$work/docker
mkdir "$DOCKER_CONFIG"

{
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=test" -keyout "$work/ca.key" -out "$work/ca.pem"
  openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$work/key.pem" -out "$work/request.pem"
  openssl x509 -req -in "$work/request.pem" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 2 \
    -CAcreateserial -extfile <(echo subjectAltName=DNS:localhost) -out "$work/cert.pem"
} 2>"$work/openssl.log"
htpasswd -Bbn ann s3cret >"$work/htpasswd"
logged_registry "$(free_port)" "  tls: {certificate: $work/cert.pem, key: $work/key.pem}" \
  "auth: {htpasswd: {realm: test, path: $work/htpasswd}}"
host=localhost:${registry##*:}

random_image "$work/oci" 5000000
skopeo copy -q --dest-tls-verify=false --dest-creds ann:s3cret "oci:$work/oci:v1" "docker://$host/team/x:v1"

refused() { # refused PATTERN: pull fails and says so
  if "$MLENV" pull "$host/team/x:v1" 2>"$work/err"; then fail "pulled; expected \`$1\`"; fi
  grep -q "$1" "$work/err" || fail "does not say \`$1\`: $(cat "$work/err")"
  if grep -q s3cret "$work/err"; then fail "prints the password"; fi
}
login() { # login USER:PASSWORD
  printf '{"auths": {"https://%s/v1/": {"auth": "%s"}}}' "$host" "$(printf %s "$1" | base64)" \
    >"$DOCKER_CONFIG/config.json"
}

note "unknown authority"
refused SSL_CERT_FILE
export SSL_CERT_FILE=$work/ca.pem
note "no login, a wrong one, the right one"
refused "docker login $host"
login ann:wrong
refused "may do this"
login ann:s3cret
"$MLENV" pull "$host/team/x:v1"
"$MLENV" tag "$host/team/x:v1" "$host/other/x:v2"
"$MLENV" push "$host/other/x:v2"
skopeo inspect --tls-verify=false --creds ann:s3cret "docker://$host/other/x:v2" >/dev/null

note "a credential helper"
export GNUPGHOME=$work/gnupg PASSWORD_STORE_DIR=$work/passwords
mkdir -m 700 "$GNUPGHOME"
{
  gpg --batch --passphrase '' --quick-generate-key test@example.org default default never
  pass init test@example.org
} >"$work/pass.log" 2>&1 || fail "no password store: $(cat "$work/pass.log")"
keep() { # keep USER PASSWORD
  printf '{"ServerURL": "%s", "Username": "%s", "Secret": "%s"}' "$host" "$1" "$2" |
    docker-credential-pass store
}
config() { printf '%s' "$1" >"$DOCKER_CONFIG/config.json"; }
pulls() { # with an empty store
  drop "$MLENV_STORE"
  "$MLENV" --verbose pull "$host/team/x:v1" >"$work/out" 2>&1 || fail "does not pull: $(cat "$work/out")"
  if grep -qE 's3cret|YW5u' "$work/out"; then fail "prints the password: $(cat "$work/out")"; fi
}

inline="\"auths\": {\"$host\": {\"auth\": \"$(printf ann:s3cret | base64)\"}}"

# What the file holds beside it does not count, as with docker.
config "{$inline, \"credsStore\": \"nobody\"}"
refused "kept by .docker-credential-nobody"
config "{$inline, \"credsStore\": \"pass\"}"
refused "docker-credential-pass. holds no login"
keep ann wrong
refused "may do this; its login is in .docker-credential-pass"
keep ann s3cret
pulls
config "{\"credsStore\": \"nobody\", \"credHelpers\": {\"$host\": \"pass\"}}"
pulls
"$MLENV" push "$host/team/x:v1" "$host/other/x:v3"
skopeo inspect --tls-verify=false --creds ann:s3cret "docker://$host/other/x:v3" >/dev/null
config "{$inline, \"credsStore\": \"nobody\", \"credHelpers\": {\"$host\": \"\"}}"
pulls
gpgconf --kill gpg-agent
verify_store
