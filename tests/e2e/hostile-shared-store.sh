#!/usr/bin/env bash
# Two users and root in one store: what one of them put there while he could write is neither followed nor taken for
# the store's by the others, and nothing of it is waited for.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq python3 busybox crun
need_root
make_user
other_id=61235
python3 "$root/tests/support/busybox_image.py" "$work/small.tar" h/small:v1
chmod 644 "$work/small.tar"
mine() { timeout 60 setpriv --reuid "$user_id" --regid "$user_id" --clear-groups env -i HOME="$user_home" MLENV_STORE="$store" \
  PATH="$work/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" mlenv "$@"; }
roots() { MLENV_STORE=$store timeout 60 "$MLENV" "$@"; }
# as_other TEXT: what another user does in the store.
as_other() { (cd "$store" && setpriv --reuid "$other_id" --regid "$other_id" --clear-groups env -i PATH="$PATH" aim="$aim" goal="$goal" boot="$boot" sh -euc "$1"); }
boot=$(cat /proc/sys/kernel/random/boot_id)
aim=$work/aim      # of the other user: what is written there has come out
goal=$work/goal    # of the user of the store: what is gone from there was followed to
hex=$(printf 'a%.0s' {1..64})
run=(run --runtime crun --no-project --no-check -e WORD=hunter2 h/small:v1 -- true)
# A store is written to disk in the background, by an mlenv that looks at its modes, too.
is_quiet() {
  local pid
  for pid in $(pgrep -f 'store sync'); do
    if grep -qzFx "MLENV_STORE=$store" "/proc/$pid/environ" 2>/dev/null; then return 1; fi
  done
}
# fresh MODE OWNER: a store of the user's, in a folder of that owner and mode.
fresh() {
  rm -rf "$work/store" "$aim" "$goal"
  install -d -m "$1" -o "$2" -g "$2" "$work/store"
  install -d -m 755 -o "$other_id" -g "$other_id" "$aim"
  install -d -m 777 -o "$other_id" -g "$other_id" "$aim/in"
  install -d -m 755 -o "$user_id" -g "$user_id" "$goal"
  install -m 600 -o "$user_id" -g "$user_id" /dev/null "$goal/paper"
  store=$work/store
  mine -q load "$work/small.tar" >/dev/null
  wait_until 20 is_quiet
}
# refused WHAT: by both, at every command; nothing has come out.
refused() {
  local who what=$1
  for who in mine roots; do
    for command in images runs "logs last" "stop last" "exec last -- true" gc "store sync" "store verify --repair"; do
      # shellcheck disable=SC2086 # several words
      $who --json $command >"$work/out" 2>"$work/err" </dev/null && [ "$command" != runs ] &&
        fail "$what: $who $command: it worked"
      case $command in runs | logs* | stop* | exec*) continue ;; esac # these need not look at all of the store
      grep -q '"code":"not-a-store"' "$work/err" || fail "$what: $who $command: $(cat "$work/err")"
    done
    failing_with not-a-store $who --json "${run[@]}"
  done
  stays "$what"
}
stays() {
  equal "$1: what came out" "" "$(find "$aim/in" -mindepth 1)"
  equal "$1: what was followed to" "$goal/paper 600" "$(find "$goal" -type f -printf '%p %m\n')"
}

note "a folder that everybody may write to, as /tmp"
fresh 1777 0
mine "${run[@]}" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
for name in runs kept history vm suspects.lock; do
  # shellcheck disable=SC2016 # for the shell inside
  for plant in 'ln -s "$aim/in" NAME' 'mkdir -m 777 NAME'; do
    fresh 1777 0
    as_other "${plant//NAME/$name}"
    refused "$plant of $name"
  done
done
rmdir "$store/suspects.lock"
mine "${run[@]}" >"$work/out" 2>&1 || fail "what was refused is taken away: $(cat "$work/out")"

note "a folder that others could write to until now"
# shellcheck disable=SC2016 # for the shell inside
for plant in 'mkdir -p blobs runs/20260101-120000-abcdef; echo {} >runs/20260101-120000-abcdef/run.json' \
  'for name in blobs keys names spliced; do mkfifo -m 666 $name/'"$hex"'; done' \
  'rm -rf unsynced/$boot; ln -s "$goal" unsynced/$boot' 'ln -s "$aim/in/new" tmp.lock.new; mv tmp.lock.new tmp.lock' \
  'mkdir -m 777 vm vm/disks' 'rm -f version; mkfifo version'; do
  fresh 755 "$user_id"
  mkdir -p "$store/runs"
  chown "$user_id" "$store/runs"
  find "$store" -type d ! -path '*/trees/*' -exec chmod 777 {} +
  as_other "$plant"
  refused "$plant"
done

note "what is no file is not waited for, whoever put it there"
fresh 755 "$user_id"
mine "${run[@]}" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
manifest=$(mine --json images | jq -r '.images[0].digest' | cut -d: -f2)
config=$(jq -r .config.digest "$store/blobs/$manifest" | cut -d: -f2)
rm "$store/blobs/$config" "$store/tmp.lock"
ln -s /dev/zero "$store/blobs/$config"
mkfifo "$store/blobs/$hex" "$store/spliced/$hex" "$store/keys/$hex"
chown -h "$user_id" "$store"/{blobs,spliced,keys}/*
failing_with damaged mine --json images
mkfifo "$store/names/pipe"
chown "$user_id" "$store/names/pipe"
failing_with not-a-file mine --json images
ln -sf "$aim/in/new" "$store/tmp.lock"
failing_with not-a-file mine --json gc
rm "$store/tmp.lock"
ends_with 3 mine store verify
for what in "blob sha256:$hex" "blob sha256:$config" "layer sha256:$hex" "file keys/$hex" "file names/pipe"; do
  grep -qF "$what" "$work/out" || fail "$what is not told: $(cat "$work/out")"
done
mine store verify --repair >"$work/out" 2>&1 || true
[ ! -L "$store/blobs/$config" ] || fail "the repair leaves a link: $(cat "$work/out")"
stays "no files"

note "nobody else holds a lock of the store"
fresh 755 "$user_id"
mine "${run[@]}" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
for lock in "$store"/*.lock; do
  if as_other "exec 9<'$lock'" 2>/dev/null; then fail "$lock is everybody's"; fi
done
