#!/bin/bash
# A registry behind TLS with a private certificate authority and a password.
set -euo pipefail
. "$(dirname "$0")/../support/registry.sh"
need docker-registry skopeo openssl htpasswd
export MLENV_STORE=$work/store
unset CURL_CA_BUNDLE SSL_CERT_DIR

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=e2e CA" \
  -keyout "$work/ca.key" -out "$work/ca.pem" 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$work/key.pem" \
  -out "$work/request.pem" 2>/dev/null
openssl x509 -req -in "$work/request.pem" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 2 \
  -CAcreateserial -extfile <(echo subjectAltName=DNS:localhost,IP:127.0.0.1) \
  -out "$work/cert.pem" 2>/dev/null
htpasswd -Bbn ann secret >"$work/htpasswd"
start_registry 0 "  tls: {certificate: $work/cert.pem, key: $work/key.pem}" \
  "auth: {htpasswd: {realm: e2e, path: $work/htpasswd}}"
at=localhost:${registry##*:}/team/x:v1

random_layer "$work/l.tar" 5000000
skopeo copy -q "tarball:$work/l.tar" "oci:$work/oci:v1"
skopeo copy -q --dest-tls-verify=false --dest-creds ann:secret "oci:$work/oci:v1" "docker://$at"

refused() { # what it must say
  if "$MLENV" pull "$at" 2>"$work/err"; then fail "pulled without: $1"; fi
  grep -q "$1" "$work/err" || fail "does not say \`$1\`: $(cat "$work/err")"
}
login() {
  mkdir -p "$work/docker"
  echo "{\"auths\": {\"https://localhost:${registry##*:}/v1/\": {\"auth\": \"$(printf %s "$1" | base64)\"}}}" \
    >"$work/docker/config.json"
}
export DOCKER_CONFIG=$work/docker

env -u SSL_CERT_FILE "$MLENV" pull "$at" 2>"$work/err" && fail "trusted an unknown authority"
grep -q SSL_CERT_FILE "$work/err" || fail "no way out named: $(cat "$work/err")"
export SSL_CERT_FILE=$work/ca.pem
refused "docker login"
login ann:wrong
refused "docker login"
login ann:secret
"$MLENV" pull "$at"
"$MLENV" tag "$at" "${at%:v1}:v2"
"$MLENV" push "${at%:v1}:v2"
skopeo inspect --tls-verify=false --creds ann:secret "docker://${at%:v1}:v2" >/dev/null
if grep -q secret "$work/err"; then fail "the password was printed"; fi
