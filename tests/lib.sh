# shellcheck shell=bash
# Helpers for tests/e2e/*.sh, which start with
#   set -euo pipefail
#   . "$(dirname "$0")/../lib.sh"
# and then have: $work (own folder, removed at the end), $root (the checkout), $MLENV (the binary;
# build/mlenv where it is not set), $programs (a folder for stand-ins on PATH: mlenv starts nothing that lies in
# the folder that it is called in, often $work), $MLENV_STORE (own), $XDG_CACHE_HOME (inputs, shared between tests
# and kept), and the functions below. Whatever they start is ended at the end.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
MLENV=$(realpath "${MLENV:-$root/build/mlenv}")
work=$(mktemp -d "${MLENV_TEST_TMP:-${TMPDIR:-/tmp}}/mlenv-test.XXXXXX")
programs=$work.programs
mkdir "$programs"
chmod 755 "$work" "$programs"
started=()
sudo=() # before what only root may do
# MLENV_TEST_ORDINARY: an ordinary user, who becomes nobody else (tests/support/both.sh).
[ "$(id -u)" -eq 0 ] || [ -n "${MLENV_TEST_ORDINARY:-}" ] || sudo=(sudo -n --)

export MLENV
export XDG_CACHE_HOME=${MLENV_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mlenv-tests}
export MLENV_STORE=$work/store
# Where a test runs uv itself: the machine's certificate authorities, as mlenv has it do.
export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-true} UV_NATIVE_TLS=${UV_NATIVE_TLS:-true}
: "${MLENV_TEST_SHARED:=$work/made-once}" "${MLENV_TEST_LONG:=0}"
mkdir -p "$XDG_CACHE_HOME" "$MLENV_TEST_SHARED"

# What looks after runs and jobs of the test's stores in the background, of a test that failed midway.
own_keepers() {
  pgrep -f -- 'mlenv __(supervise|drive|release)' | while read -r pid; do
    if "${sudo[@]}" grep -qzF "MLENV_STORE=$work/" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
  done || true
}
# ext4 without a journal passes by each inode removed in the last minutes before it makes a file, which took up to
# half of the processors' time. So a run of all tests removes their folders ($MLENV_TEST_LATER) when all are through,
# as far as the disk has room; what is not small and has no other name is emptied now.
remove_work() {
  local free_gigabytes free_inodes
  "${sudo[@]}" rm -rf "$programs"
  read -r free_gigabytes free_inodes < <(df -BG --output=avail,iavail "$work" | tail -n 1 | tr -d G)
  if [ -d "${MLENV_TEST_LATER:-}" ] && [ "$free_gigabytes" -gt 20 ] && [ "$free_inodes" -gt 1000000 ]; then
    # A program there may still run: mlenv writes a store to disk in the background.
    "${sudo[@]}" find "$work" -xdev -type f -links 1 -size +16k -exec truncate --size 0 {} + 2>/dev/null || true
    "${sudo[@]}" mv "$work" "$MLENV_TEST_LATER/"
  else
    # What a run in the background ends with may come just now.
    "${sudo[@]}" rm -rf --one-file-system "$work" || { sleep 2 && "${sudo[@]}" rm -rf --one-file-system "$work"; }
  fi
}
finish_test() {
  local status=$? pid
  trap - EXIT
  if declare -F nodes_down >/dev/null; then nodes_down; fi
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in $(own_keepers); do "${sudo[@]}" kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
  grep -oE " $work/[^ ]+" /proc/self/mounts | LC_ALL=C sort -r | xargs -r "${sudo[@]}" umount -l || true
  # Folders alone: files of `base_tree` have other names elsewhere.
  [ "$(id -u)" -eq 0 ] || find "$work" -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null || true
  remove_work
  exit "$status"
}
trap finish_test EXIT
trap 'exit 143' INT TERM

# Says why and ends the test as skipped.
skip() {
  echo "skip: $*"
  exit 77
}
fail() {
  echo "failed: $*" >&2
  exit 1
}
# note TEXT: what is being tested, with the seconds since the start.
note() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
need() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || skip "\`$program\` is not installed"
  done
}
need_node_agent() { [ -x "$(dirname "$MLENV")/mlenv-node" ] || skip "mlenv-node is not built here"; }
# failing_with CODE COMMAND…: it fails, and says so with this code (`--json` is among its words).
failing_with() {
  local code=$1
  shift
  if "$@" >"$work/out" 2>"$work/err"; then fail "it worked: $*"; fi
  grep -qF "\"code\":\"$code\"" "$work/err" || fail "not $code: $(cat "$work/err")"
}
# ends_with STATUS COMMAND…: what it says is in $work/out and $work/err.
ends_with() {
  local status=0 expected=$1
  shift
  "$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = "$expected" ] || fail "status $status, not $expected: $*: $(tail -n 40 "$work/out" "$work/err")"
}
equal() { # equal WHAT EXPECTED FOUND
  [ "$2" = "$3" ] || fail "$1: expected \`$2\`, found \`$3\`"
}

as_root() { "${sudo[@]}" "$@"; }
has_root() { [ -z "${MLENV_TEST_ORDINARY:-}" ] && as_root true 2>/dev/null; }
need_root() { has_root || skip "neither root nor sudo"; }

# nothing_said: before a command in the background whose words are waited for: those of the one before
# it would else be taken for an answer.
nothing_said() {
  : >"$work/out"
  : >"$work/err"
}

# wait_until SECONDS COMMAND…: polls a condition with a deadline.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || fail "not within the deadline: $*"
    read -rt 0.05 <> <(:) || true
  done
}

# A port that nobody listens on right now.
free_port() {
  python3 -c 'import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])'
}

# start LOG PROGRAM…: in the background, ended with the test (a function's children would not be).
start() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null &
  started+=($!)
}

# start_registry: Debian's docker-registry on loopback; sets $registry (127.0.0.1:PORT).
start_registry() {
  need docker-registry curl
  local port
  port=$(free_port)
  cat >"$work/registry.yml" <<CONFIG
version: 0.1
log: {level: error}
storage:
  filesystem: {rootdirectory: $work/registry}
  delete: {enabled: true}
http: {addr: "127.0.0.1:$port"}
CONFIG
  start "$work/registry.log" docker-registry serve "$work/registry.yml"
  registry=127.0.0.1:$port
  wait_until 20 curl --noproxy '*' -fs "http://$registry/v2/"
}

# uv_program: path of a uv, the one that mlenv uses.
uv_program() {
  command -v uv || find "$XDG_CACHE_HOME/mlenv/uv" -name uv -type f -perm -u+x | LC_ALL=C sort | head -n 1
}

# some_uv: the same, fetched as mlenv does it where no test did so yet.
some_uv() {
  if [ -z "$(uv_program 2>/dev/null)" ]; then
    small_recipe "$work/uv.yaml" idna
    "$MLENV" -q lock "$work/uv.yaml" >&2
  fi
  uv_program
}

# make_user: an ordinary user, of an id that nobody has, with a home and an mlenv of its own.
user_id=61234
user_home=$work/home
make_user() {
  need_root
  need setpriv
  as_root install -d -m 700 -o "$user_id" -g "$user_id" "$user_home"
  # The originals may lie where only root can look.
  mkdir "$work/bin"
  cp "$MLENV" "$work/bin/mlenv"
  if [ -n "$(uv_program)" ]; then cp "$(uv_program)" "$work/bin/uv"; fi
  chmod -R a+rX "$work/bin"
}

# user_store [FOLDER]: `make_user`, who has a copy of the store as it is now, $user_home/store (or
# FOLDER). Of trees that are hard links (`base_tree`), it has links to ones of theirs.
# shellcheck disable=SC2120
user_store() {
  local to=${1:-$user_home/store} linked=$work/linked-trees theirs='' tree
  make_user
  if [ -e "$linked" ]; then
    linked=$(cat "$linked")
    theirs=$linked.trees-of-$user_id
    (
      flock 9
      if [ ! -d "$theirs" ]; then
        as_root cp -a --reflink=auto "$linked/trees" "$theirs.new"
        as_root chown -R "$user_id:$user_id" "$theirs.new"
        as_root mv "$theirs.new" "$theirs"
      fi
    ) 9>"$theirs.busy"
  fi
  as_root mkdir -p "$to/trees"
  as_root find "$MLENV_STORE" -mindepth 1 -maxdepth 1 ! -name trees -exec cp -a --reflink=auto -t "$to" {} +
  for tree in $(as_root ls -A "$MLENV_STORE/trees" 2>/dev/null); do
    if [ -z "$theirs" ] || ! as_root test -d "$theirs/$tree"; then
      as_root cp -a --reflink=auto "$MLENV_STORE/trees/$tree" "$to/trees/"
    fi
  done
  as_root chown -R "$user_id:$user_id" "$to"
  if [ -n "$theirs" ]; then as_root cp -al "$theirs/." "$to/trees"; fi
}

# as_user [K=V]… COMMAND…: nothing is inherited but what says how this machine reaches its package
# sources.
as_user() {
  as_root setpriv --reuid "$user_id" --regid "$user_id" --clear-groups --no-new-privs \
    env -i HOME="$user_home" PATH="$work/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    LC_ALL=C.UTF-8 "${machine_env[@]}" "$@"
}
machine_env=()
while IFS= read -r -d '' variable; do
  machine_env+=("$variable")
done < <(env -0 | grep -zE '^(PIP_|UV_|SSL_|CURL_CA|REQUESTS_CA|[A-Za-z]+_proxy=|[A-Z]+_PROXY=|MLENV_DEBIAN)' || true)

# recipe NAME: copies catalog recipe NAME into $work/NAME and prints the copy's path. The lock made
# first by any test of this run is used by all.
recipe() {
  mkdir -p "$work/$1"
  cp "$root/recipes/catalog/$1.yaml" "$work/$1/"
  (
    flock 9
    if [ ! -e "$MLENV_TEST_SHARED/$1.lock" ]; then
      "$MLENV" lock "$work/$1/$1.yaml" >&2
      cp "$work/$1/$1.lock" "$MLENV_TEST_SHARED/$1.lock.new"
      mv "$MLENV_TEST_SHARED/$1.lock.new" "$MLENV_TEST_SHARED/$1.lock"
    fi
  ) 9>"$MLENV_TEST_SHARED/$1.lock.busy"
  cp "$MLENV_TEST_SHARED/$1.lock" "$work/$1/"
  echo "$work/$1/$1.yaml"
}

# once FOLDER COMMAND…: FOLDER is made by the first of a run who asks for it: COMMAND makes its last argument, which then
# becomes FOLDER whole.
once() {
  local folder=$1
  shift
  (
    flock 9
    if [ ! -d "$folder" ]; then
      "$@" "$folder.new"
      mv "$folder.new" "$folder"
    fi
  ) 9>"$folder.busy"
}

# shared_store: sets MLENV_STORE to the store that tests share and must not damage; it begins as base_store's.
shared_store() {
  export MLENV_STORE=$MLENV_TEST_SHARED/store
  once "$MLENV_STORE" base_store
}

# shared_image NAME: builds catalog recipe NAME, once per run, in the shared store; sets $recipe_path, and
# $image to the digest.
shared_image() {
  shared_store
  recipe_path=$(recipe "$1")
  # shellcheck disable=SC2034  # for the caller
  image=$(build_digest "$recipe_path")
}

# shared_bare: the same with a Debian of no packages but its own.
shared_bare() {
  mkdir -p "$work/bare"
  printf 'name: bare\nbase: debian:bookworm\n' >"$work/bare/bare.yaml"
  shared_own bare
}

# shared_small: the same with Debian, Python, NumPy and einops.
shared_small() {
  mkdir -p "$work/small"
  small_recipe "$work/small/small.yaml" numpy einops
  shared_own small
}

# shared_own NAME: the same with a test's own recipe, $work/NAME/NAME.yaml, which all write alike.
shared_own() {
  shared_store
  recipe_path=$work/$1/$1.yaml
  (
    flock 9
    if [ ! -e "$MLENV_TEST_SHARED/$1.lock" ]; then
      "$MLENV" build "$recipe_path" >&2
      cp "$work/$1/$1.lock" "$MLENV_TEST_SHARED/$1.lock"
    fi
  ) 9>"$MLENV_TEST_SHARED/$1.lock.busy"
  cp "$MLENV_TEST_SHARED/$1.lock" "$work/$1/"
  # shellcheck disable=SC2034  # for the caller
  image=$(build_digest "$recipe_path" --locked)
}

# build_digest ARGUMENT…: of `mlenv build`; prints the digest alone.
build_digest() {
  local digest
  digest=$("$MLENV" build "$@" | tail -n 1)
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || fail "build printed \`$digest\`, not a digest"
  echo "$digest"
}

# small_recipe FILE PACKAGE…: Debian, Python and a few wheels.
small_recipe() {
  local file=$1
  shift
  cat >"$file" <<RECIPE
name: small
base: debian:bookworm
python: "3.11"
packages: [$(printf '%s, ' "$@")]
RECIPE
}

# base_store [FOLDER]: the own store (or FOLDER) begins with the Debian base that all recipes here
# have, built once; layers only, without the unpacked tree, which is made again when needed.
# shellcheck disable=SC2120
base_store() {
  once "$MLENV_TEST_SHARED/base" build_base
  copy_store "$MLENV_TEST_SHARED/base" "${1:-$MLENV_STORE}"
}

build_base() { # build_base STORE
  printf 'name: base\nbase: debian:bookworm\npython: "3.11"\n' >"$work/base.yaml"
  MLENV_STORE=$1 "$MLENV" build "$work/base.yaml" >&2
}

# copy_store FROM TO: without its unpacked trees.
copy_store() {
  mkdir -p "$2/trees"
  find "$1" -mindepth 1 -maxdepth 1 ! -name trees -exec cp -a --reflink=auto -t "$2" {} +
}

# link_trees FROM TO: the unpacked trees of a store are another's too, by hard links; fails, and leaves none, where TO is
# on another disk.
link_trees() {
  if ! cp -al "$1/trees/." "$2/trees" 2>/dev/null; then
    rm -rf "$2/trees"
    mkdir "$2/trees"
    return 1
  fi
}

# small_store [FOLDER]: the own store (or FOLDER) begins with the image `small` (small_recipe of six), built once,
# with its unpacked trees; sets $image.
# shellcheck disable=SC2120
small_store() {
  local to=${1:-$MLENV_STORE}
  make_small
  mkdir -p "$to"
  cp -a --reflink=auto "$MLENV_TEST_SHARED/small/." "$to/"
}
make_small() {
  once "$MLENV_TEST_SHARED/small" build_small
  # shellcheck disable=SC2034  # for the caller
  image=$(cat "$MLENV_TEST_SHARED/small.recipe/digest")
}
build_small() { # build_small STORE
  local recipe=$MLENV_TEST_SHARED/small.recipe
  base_store "$1"
  mkdir -p "$recipe"
  small_recipe "$recipe/small.yaml" six
  MLENV_STORE=$1 build_digest "$recipe/small.yaml" >"$recipe/digest"
  MLENV_STORE=$1 "$MLENV" check small >"$recipe/check" 2>&1 || true # what it finds out is kept
}

# base_tree, small_tree: `base_store` and `small_store` for the own store, whose trees are unpacked: by hard links to
# trees that all tests share, in a tenth of the time. For tests that change nothing in a tree, nor its owner.
base_tree() {
  base_store
  own_links "$MLENV_TEST_SHARED/base"
}
small_tree() {
  make_small
  copy_store "$MLENV_TEST_SHARED/small" "$MLENV_STORE"
  cp "$MLENV_TEST_SHARED/small.recipe"/small.{yaml,lock} "$work/"
  own_links "$MLENV_TEST_SHARED/small"
}
own_links() { # own_links STORE: whose they are is for `user_store`
  if link_trees "$1" "$MLENV_STORE"; then echo "$1" >"$work/linked-trees"; fi
}

# reader_agrees IMAGE OCI_FOLDER [ARGUMENT…]: tests/support/read_layers.py finds nothing wrong, and
# the layers that we know.
reader_agrees() {
  local name=$1 folder=$2
  shift 2
  python3 "$root/tests/support/read_layers.py" "$folder" --epoch 0 "$@" >"$work/found" || fail "$name: see above"
  "$MLENV" --json inspect "$name" |
    jq -r '.layers[] | "\(.digest) \(.size_bytes) \(.diff_id) \(.title)"' >"$work/known"
  cut -d' ' -f2- "$work/found" | diff "$work/known" - || fail "$name: other layers"
  note "$name: the reader agrees about $(wc -l <"$work/known") layers"
}

# drop FOLDER…: removes it, although a store's background sync may still work there.
drop() { wait_until 20 as_root rm -rf "$@"; }

# verify_store [STORE]: after every change of a store, it must verify.
# shellcheck disable=SC2120
verify_store() {
  MLENV_STORE=${1:-$MLENV_STORE} "$MLENV" store verify >"$work/verify.log" 2>&1 || {
    cat "$work/verify.log"
    fail "the store does not verify"
  }
}
