#!/usr/bin/env bash
# What a run gets by default and by its options: user, home, files of variables, folders in memory, a
# read-only root, caches, limits of a process, labels; as root and as an ordinary user.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc crun jq
need_root

small_tree
user_store
mkdir -p "$work/project" "$work/data" "$work/cache"
chmod 777 "$work/project" "$work/data" "$work/cache"

run_as() { # run_as WHO ARGUMENT…: `mlenv run` in the project
  local who=$1
  shift
  if [ "$who" = root ]; then
    (cd "$work/project" && as_root env MLENV_STORE="$MLENV_STORE" HF_HOME="$work/cache/hf" HOST=mine "$MLENV" run "$@")
  else
    (cd "$work/project" && as_user MLENV_STORE="$user_home/store" HF_HOME="$work/cache/hf-user" HOST=mine mlenv run "$@")
  fi
}
record() { # record WHO EXPRESSION: of the newest run's record
  if [ "$1" = root ]; then
    as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" --json runs show last | jq -cr "$2"
  else
    as_user MLENV_STORE="$user_home/store" mlenv --json runs show last | jq -cr "$2"
  fi
}

cat >"$work/project/some.env" <<'ENV'
# of this project
A=from file
B="quoted" # kept
HOST
ENV
printf 'GOOD=1\nexport X=1\n=none\n' >"$work/project/bad.env"

for who in root user; do
  note "$who: home, name, caches below it, folders in memory"
  # shellcheck disable=SC2016  # for the shell inside
  equal "$who: home" "root /root" "$(run_as "$who" small -- sh -c 'mkdir -p ~/.cache/x && echo $(id -un) $HOME')"
  size=$(run_as "$who" small -- sh -c 'df --output=size -k /dev/shm | tail -n 1')
  total=$(awk '/^MemTotal/ {print $2}' /proc/meminfo)
  [ "$size" -gt $((total / 2 - 1024)) ] || fail "$who: /dev/shm has $size KiB"
  equal "$who: its size" 65536 "$(run_as "$who" --shm-size 64m small -- sh -c 'df --output=size -k /dev/shm | tail -n 1' | tr -d ' ')"
  equal "$who: --tmpfs" "1024 drwxr-xr-x" "$(run_as "$who" --tmpfs /fast:size=1m,mode=755 small -- sh -c 'df --output=size -k /fast | tail -n 1; stat -c %A /fast' | xargs)"
  equal "$who: --mount" "1024 mine" "$(run_as "$who" --mount type=tmpfs,dst=/fast,tmpfs-size=1m \
    --mount "type=bind,src=$work/data,dst=/data" small -- sh -c 'df --output=size -k /fast | tail -n 1; echo mine >/data/f; cat /data/f' | xargs)"
  equal "$who: the file's owner" "$([ "$who" = root ] && echo 0 || echo "$user_id")" "$(stat -c %u "$work/data/f")"
  as_root rm "$work/data/f"

  note "$who: a file of variables; -e goes over it, wherever it stands"
  # shellcheck disable=SC2016  # for the shell inside
  equal "$who: values" 'mine|"quoted" # kept|above' \
    "$(run_as "$who" -e A=above --env-file some.env small -- sh -c 'echo "$HOST|$B|$A"')"
  if run_as "$who" --env-file bad.env small -- true 2>"$work/err"; then fail "$who: it was taken"; fi
  equal "$who: one error" 1 "$(grep -c '^error: ' "$work/err")"
  grep -qF "bad.env:2: no \`export\` here" "$work/err" || fail "$who: $(cat "$work/err")"
  grep -qF 'bad.env:3: there is no name' "$work/err" || fail "$who: $(cat "$work/err")"

  note "$who: a read-only root, with runc's and the image's own files in place"
  run_as "$who" --read-only small -- sh -c '
    if touch /etc/x /opt/x 2>/dev/null; then exit 1; fi
    touch /tmp/x /dev/shm/x && mkdir -p ~/.cache/y && touch ~/.cache/y/x && [ -e ~/.profile ] && cat /etc/resolv.conf >/dev/null' ||
    fail "$who: read-only"
  [ -w "$work/project" ] || fail "the project cannot be written"

  note "$who: host name, limits of a process, labels; the record has them"
  # shellcheck disable=SC2016  # for the shell inside
  run_as "$who" --hostname node-7 --ulimit nofile=100:200 --label team=a --label x small -- sh -c '
    [ "$(hostname)" = node-7 ] && [ "$(ulimit -n)" = 100 ] && [ "$(ulimit -Hn)" = 200 ] &&
    python -c "import socket; socket.gethostbyname(socket.gethostname())"' || fail "$who: not as asked"
  equal "$who: recorded" 'node-7 [{"hard":200,"name":"nofile","soft":100}] [{"name":"team","value":"a"},{"name":"x","value":""}] host' \
    "$(record "$who" '.start.options | "\(.hostname) \(.ulimits) \(.labels) \(.network)"')"

  note "$who: a cache of this machine"
  # shellcheck disable=SC2016  # for the shell inside
  run_as "$who" --cache hf small -- sh -c 'echo model >$HF_HOME/model'
  folder=$work/cache/hf$([ "$who" = root ] || echo -user)
  equal "$who: what it holds" model "$(cat "$folder/model")"
  equal "$who: none unasked" "" "$(run_as "$who" small -- sh -c 'ls /var/cache/mlenv 2>/dev/null; printenv HF_HOME' || true)"
done
# shellcheck disable=SC2016  # for the shell inside
equal "all of them" "4" "$(as_user MLENV_STORE="$user_home/store" mlenv run --cache all small --no-project -- sh -c 'ls -d $HF_HOME $TORCH_HOME $PIP_CACHE_DIR $UV_CACHE_DIR | wc -l')"
[ -d "$user_home/.cache/torch" ] || fail "no cache in the usual place"

note "another user, as root"
# shellcheck disable=SC2016  # for the shell inside
equal "by number" "1234:77:user-1234:/home/user-1234" \
  "$(run_as root --user 1234:77 small --no-project -- sh -c 'mkdir -p ~/.cache && touch ~/.cache/x && echo "$(id -u):$(id -g):$(id -un):$HOME"')"
equal "by name" "nobody 4 44" "$(run_as root -u nobody:tty --group-add 44 --group-add adm small -- sh -c 'id -un; id -G' | xargs | sed 's/ 5 / /')"
equal "recorded" 'nobody:tty ["44","adm"]' "$(record root '.start.options | "\(.user) \(.groups)"')"
equal "with a read-only root" ok "$(run_as root --user 1234 --read-only small --no-project -- sh -c 'mkdir -p ~/.cache && touch ~/.cache/x && echo ok')"
for runtime in runc crun; do
  run_as root --runtime "$runtime" --read-only --tmpfs /m --ulimit nofile=99 --user 7 small -- sh -c 'touch /m/x ~/x' ||
    fail "$runtime: not as asked"
done
run_as user --runtime crun --read-only --tmpfs /m --ulimit nofile=99 small -- sh -c 'touch /m/x ~/x' || fail "crun: not as asked"

note "the command begins where the image was named, with and without --"
status=0
run_as root --label a=b --network host -u root --shm-size 64m --cache pip small sh -c 'exit 7' || status=$?
equal "status" 7 "$status"

note "what cannot be had is told, and nothing is started"
failing_with no-user as_root "$MLENV" --json run --user stranger small -- true
failing_with no-user as_root "$MLENV" --json run --group-add strangers small -- true
failing_with no-user-map as_user MLENV_STORE="$user_home/store" mlenv --json run --user 1234 small -- true
failing_with no-user-map as_user MLENV_STORE="$user_home/store" mlenv --json run --group-add video small -- true
equal "root is what they are anyhow" 0 "$(run_as user --user root small -- id -u)"
failing_with no-limit as_user MLENV_STORE="$user_home/store" mlenv --json run --ulimit nofile=99999999 small -- true
if [ ! -e /dev/infiniband ]; then failing_with no-rdma "$MLENV" --json run --rdma small -- true; fi
for words in "--env-file absent.env" "--cache none" "--network bridge" "--network host -p 80:80" "-p 80" "--memory 1" \
  "--cpus x" "--cpuset-cpus x" "--pids-limit 0" "--shm-size x" "--ulimit x=1" "--hostname a_b" "--label =x" \
  "--tmpfs m" "--mount dst=/x"; do
  status=0
  # shellcheck disable=SC2086  # several words
  "$MLENV" run $words small -- touch started >"$work/out" 2>"$work/err" || status=$?
  equal "status of $words" 125 "$status"
  equal "errors about $words" 1 "$(grep -c '^error: ' "$work/err")"
  [ ! -e started ] || fail "$words: it was started"
done
