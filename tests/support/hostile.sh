# shellcheck shell=bash disable=SC2154  # $work and $root are those of lib.sh
# Sourced by tests/e2e/hostile-*.sh after lib.sh: images of a static busybox, and a part of this machine that nobody
# in a container may see or change: $host, with the file `secret`.
need busybox python3 runc crun
host=$work/host
secret=the-secret-of-the-machine-$$
mkdir -m 777 "$host"
echo "$secret" >"$host/secret"

# hostile_image NAME [WORD…]: tests/support/busybox_image.py, loaded.
hostile_image() {
  python3 "$root/tests/support/busybox_image.py" "$work/$1.tar" "hostile/$1:v1" "${@:2}"
  "$MLENV" -q load "$work/$1.tar" >/dev/null
}
# What a program does that may have come out: it reads and writes the machine's files by way of the folder that it is
# in, and of those above it.
# shellcheck disable=SC2034  # for the scenarios
look="for up in . .. ../.. ../../..; do cat \$up$host/secret; echo >\$up$host/escaped; done 2>/dev/null; true"
# nobody_out WHAT: what was said is in $work/out and $work/err.
nobody_out() {
  if grep -qF "$secret" "$work/out" "$work/err"; then fail "$1: the machine's file was read"; fi
  equal "$1: the machine's files" "secret" "$(ls "$host")"
  equal "$1: the machine's file" "$secret" "$(cat "$host/secret")"
}
# tried WHAT COMMAND…: whatever its status.
tried() {
  local what=$1
  shift
  "$@" >"$work/out" 2>"$work/err" </dev/null || true
  nobody_out "$what"
}
