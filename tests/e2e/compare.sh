#!/usr/bin/env bash
# `mlenv compare`: bare host and built-in container from one image. Figures fit their schema and are of the
# right size, a planted slow-down is seen in its row and in no other, nothing is claimed where intervals
# touch, reruns are kept, and nothing is left behind. With --long: what it measures is what the same tool
# says in a container made by hand, Docker, podman and a virtual machine (vm.sh has it alone in every
# run) take part, training is measured, a throttled disk is in its rows, as the slowed processor is, and the page holds in
# a browser.
# first
# shellcheck disable=SC2119  # no options
# packages: qemu-system-x86
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need runc jq
need_root
python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
if [ "$MLENV_TEST_LONG" = 1 ]; then trap 'status=$?; set +e; end_engines; (exit "$status"); finish_test' EXIT; fi

base_tree
printf 'name: tools\nbase: debian:bookworm\npython: "3.11"\nsystem: [sysbench, fio, stress-ng, iperf3]\n' >"$work/tools.yaml"
build_digest "$work/tools.yaml" >/dev/null
cd "$work"

compare() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" -q compare "$@"; }
value() { # value FILE ROW SIDE WHAT
  jq -r --arg row "$2" --arg side "$3" ".rows[] | select(.id == \$row) | .sides[] | select(.side == \$side) | $4" "$1"
}
holds() { [ "$(jq -n "$1")" = true ] || fail "$2: $1"; } # holds EXPRESSION WHAT

note "figures"
compare tools --tools tools --sides bare,builtin --quick --rows start.user,stop,cpu.integer,isolation,size,train --budget 20s \
  --json-file one.json >table 2>err
"$root/tests/schema/check.py" <one.json
for row in start.user stop cpu.integer; do
  for side in bare builtin; do
    holds "$(value one.json "$row" "$side" .summary.count) >= 5" "$row on $side: starts"
    holds "$(value one.json "$row" "$side" .summary.median) > 0" "$row on $side: median"
  done
done
holds "$(value one.json start.user bare .summary.median) < $(value one.json start.user builtin .summary.median)" "a start"
claimed=overlap # as on a machine that is too busy to tell
later=$(jq -n "$(value one.json start.user bare .summary.high) < $(value one.json start.user builtin .summary.low)")
[ "$later" = false ] || claimed=worse
equal "what is claimed of a container's start" "$claimed" "$(value one.json start.user builtin .relation)"
kernel=$(uname -r)
equal "kernel of the container" "$kernel, the host's" "$(value one.json isolation.kernel builtin .text)"
holds "$(value one.json isolation.processes builtin .summary.median) < $(value one.json isolation.processes bare .summary.median)" "processes"
holds "$(value one.json isolation.calls builtin .summary.median) < $(value one.json isolation.calls bare .summary.median)" "calls"
equal "size to ship" "$("$MLENV" --json inspect tools | jq .size_bytes)" "$(value one.json size.ship builtin .summary.median)"
holds "$(value one.json size.update builtin .summary.median) <= $(value one.json size.ship builtin .summary.median)" "an update"
equal "no framework" "the image has none of PyTorch, JAX, TensorFlow and scikit-learn" \
  "$(value one.json train.step builtin .why)"
grep -q 'start, to the first instruction' table || fail "no such row: $(cat table)"

note "what else is measured of a machine; with --long, training"
learning=tools rows=data,network,cpu.float,disk.random,memory.bandwidth budget=20s
units='{"data.load": "files/s", "network.bandwidth": "bytes/s", "network.latency": "s", "cpu.float": "operations/s",
  "disk.random": "operations/s", "memory.bandwidth": "bytes/s"}'
if [ "$MLENV_TEST_LONG" = 1 ]; then
  learning=learning rows=start.import,start.step,train,$rows budget=40s
  units=$(jq '. + {"start.import": "s", "start.step": "s", "train.step": "s", "train.epoch": "s"}' <<<"$units")
  printf 'name: learning\nbase: debian:bookworm\npython: "3.11"\npackages: [scikit-learn]\n' >"$work/learning.yaml"
  build_digest "$work/learning.yaml" >/dev/null
fi
compare "$learning" --tools tools --sides bare,builtin --budget "$budget" --json-file learning.json --rows "$rows" >table 2>err
"$root/tests/schema/check.py" <learning.json
equal "rows and their units" "$(jq -cS . <<<"$units")" "$(jq -cS '[.rows[] | {key: .id, value: .unit}] | from_entries' learning.json)"
for side in bare builtin; do
  for row in $(jq -r 'keys[]' <<<"$units"); do
    holds "$(value learning.json "$row" "$side" .summary.median) > 0" "$row on $side: $(cat table)"
  done
  holds "$(value learning.json memory.bandwidth "$side" .summary.median) > 1e8" "bytes, not megabytes, on $side"
  holds "$(value learning.json network.bandwidth "$side" .summary.median) > 1e7" "the loopback on $side"
  holds "$(value learning.json network.latency "$side" .summary.median) < 0.1" "seconds on $side"
  [ "$MLENV_TEST_LONG" = 1 ] || continue
  holds "$(value learning.json start.import "$side" .summary.median) < $(value learning.json start.step "$side" .summary.median)" "steps after imports"
  holds "$(value learning.json train.step "$side" .summary.median) * 8 < $(value learning.json train.epoch "$side" .summary.median)" "32 steps on $side"
  [[ $(value learning.json train.step "$side" .note) = scikit-learn* ]] || fail "what trained on $side: $(cat table)"
done

if [ "$MLENV_TEST_LONG" = 1 ]; then
  compare learning --sides builtin --budget 13s --rows start.cold-import --json-file cold.json >table 2>err
  holds "$(value cold.json start.cold-import builtin .summary.median) > 0" "an import, files not in memory: $(cat table)"
fi

note "on the bare host an image's files can only be read"
mkdir written
write=(python3 -c 'import os; open("beside", "w").close(); open(os.__file__, "a").write("#")')
(cd written && compare tools --sides bare,builtin --rows command --budget 4s --json-file ../written.json -- "${write[@]}") >table 2>err
[ -e written/beside ] || fail "the command wrote nothing at all: $(cat table)"
[[ $(value written.json command.wall bare .why) = *'Read-only file system'* ]] || fail "it could write: $(cat table)"
equal "a container of its own" null "$(value written.json command.wall builtin .why)"
as_root find "$MLENV_STORE/trees" -path '*/python3.11/os.py' -exec tail -c 1 {} + >ends
! grep -q '#' ends || fail "the store's file was written"

note "what a command leaves running is not waited for, and ends"
compare tools --sides bare --rows command --budget 3s --json-file daemon.json -- sh -c "setsid sleep 34.$$ & true" >table 2>err
holds "$(value daemon.json command.wall bare .summary.count) >= 2" "starts of a command with a daemon: $(cat table)"
! pgrep -f "^sleep 34.$$\$" >/dev/null || fail "the daemon goes on"

note "a first start stays one where no other follows"
mkdir once
# shellcheck disable=SC2016  # for the shell inside
once=(sh -c 'echo >>starts; [ $(wc -l <starts) -lt 2 ]')
(cd once && compare tools --sides builtin --rows command --budget 4s --json-file ../once.json -- "${once[@]}") >table 2>err
equal "starts that counted" 1 "$(value once.json command.wall builtin .summary.count)"
[[ $(value once.json command.wall builtin .note) = *'one start, not warmed up' ]] || fail "shown as any other figure: $(cat once.json)"

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "a virtual machine, in a session after that of another side"
  compare tools --sides bare --rows start.user --budget 1s --json-file vm.json >table 2>err
  compare tools --sides builtin,vm --rows start.user --budget 15s --json-file vm.json >table 2>err
  "$root/tests/schema/check.py" <vm.json
  [ "$(value vm.json start.user vm .why)" != null ] || [ "$(value vm.json start.user vm .summary)" != null ] ||
    fail "nothing is said of the virtual machine"
  accelerator=$(jq -r '.sessions[1].machines[0].accelerator' vm.json)
  equal "the first side of the session" null "$(value vm.json start.user builtin .relation)"
  if [ "$(value vm.json start.user vm .summary)" != null ]; then
    [ "$(value vm.json start.user vm .relation)" != null ] || fail "not held against the container: $(cat vm.json)"
    holds "$(jq '.sessions[1].machines[0].memory_bytes < .host.memory_bytes' vm.json)" "how much memory it had"
    grep -q '^not equal: virtual machine had .* of memory' table || fail "unequal memory is not told: $(cat table)"
    [[ $accelerator = kvm || $accelerator = tcg ]] || fail "the virtual machine's accelerator is not known: $(cat table)"
    marked=$(grep -c 'virtual machine, emulated' table || true)
    equal "marked as emulated" "$([ "$accelerator" = tcg ] && echo 1 || echo 0)" "$marked"
  fi

  if [ "$(value vm.json start.user vm .summary)" != null ]; then
    note "how large its disk is when it travels: between half of and twice what gzip makes of it"
    compare tools --sides vm --rows size.ship --budget 5s --json-file size.json >table 2>err
    packed=$(as_root find "$MLENV_STORE"/vm/disks "$MLENV_STORE"/vm/kernels -type f -exec gzip -1c {} + | wc -c)
    holds "$(value size.json size.ship vm .summary.median) | . > $packed / 2 and . < $packed * 2" "the machine's size"
  fi
fi

note "no claim where intervals touch"
jq -e '[.rows[] | .sides[] | select(.relation == "overlap" or .relation == "too-few") | .ratio] | all(. == null)' one.json >/dev/null ||
  fail "something is claimed: $(cat one.json)"
jq -e '[.rows[] | .sides[0] as $base | .sides[] | select(.ratio != null) |
  .summary.low > $base.summary.high or .summary.high < $base.summary.low] | all' one.json >/dev/null ||
  fail "a claim over intervals that touch: $(cat one.json)"

note "a planted slow-down is in its row"
for budget in 18s 60s 60s; do # on a busy machine a single round may reach from one interval into the other: more rounds, then
  compare tools --tools tools --sides bare,builtin --rows cpu.integer,isolation.processes --budget "$budget" --option builtin=--cpus=0.1 \
    --json-file slow.json >table 2>err
  [ "$(value slow.json cpu.integer builtin .relation)" != worse ] || break
  note "not seen within $budget: $(jq -c '[.rows[] | select(.id == "cpu.integer") | .sides[] | {side, values: [.samples[].value]}]' slow.json)"
  mv slow.json "unseen-$budget.json"
done
[ -e slow.json ] || fail "a tenth of a processor is not seen in three tries"
equal "the processor's row" worse "$(value slow.json cpu.integer builtin .relation)"
holds "$(value slow.json cpu.integer builtin .ratio) < 0.6" "a tenth of a processor"
equal "another row" "$(value one.json isolation.processes builtin .summary.median)" "$(value slow.json isolation.processes builtin .summary.median)"
grep -q 'not equal: built-in container had --cpus=0.1 of its own' table || fail "not said: $(cat table)"

whole_disk() { # whole_disk FOLDER: numbers of the disk that it lies on, as limits of control groups know it
  local folder
  folder=/sys/dev/block/$(findmnt -no MAJ:MIN -T "$1" | tr -d ' ')
  [ ! -e "$folder/partition" ] || folder=$folder/..
  cat "$folder/dev"
}
if [ "$MLENV_TEST_LONG" = 1 ] && disk=$(whole_disk "$MLENV_STORE" 2>/dev/null); then
  note "a throttled disk is in its rows"
  # The runtimes themselves, given bundles with such a limit.
  for runtime in runc crun; do
    program=$(command -v "$runtime") || continue
    cat >"$programs/$runtime" <<WRAPPER
#!/usr/bin/env bash
bundle=\$(printf '%s\n' "\$@" | grep -xA1 -e --bundle | tail -n 1)
if [ -n "\$bundle" ]; then
  jq '[{major: ${disk%:*}, minor: ${disk#*:}, rate: 30000000}] as \$limit |
    .linux.resources.blockIO = {throttleReadBpsDevice: \$limit, throttleWriteBpsDevice: \$limit}' \
    "\$bundle/config.json" >"\$bundle/config.new"
  mv "\$bundle/config.new" "\$bundle/config.json"
fi
exec "$program" "\$@"
WRAPPER
    chmod 755 "$programs/$runtime"
  done
  PATH=$programs:$PATH compare tools --tools tools --sides bare,builtin --quick --rows disk.read,disk.write,isolation.processes --budget 100s \
    --json-file disk.json >table 2>err
  for row in disk.read disk.write; do
    equal "the throttled $row" worse "$(value disk.json "$row" builtin .relation)"
    holds "$(value disk.json "$row" builtin .summary.high) < 60e6" "$row under its limit"
    holds "$(value disk.json "$row" bare .summary.low) > $(value disk.json "$row" builtin .summary.high)" "$row without a limit"
  done
  equal "another row" "$(value one.json isolation.processes builtin .summary.median)" "$(value disk.json isolation.processes builtin .summary.median)"
else
  note "left out: a throttled disk (--long), or the store lies on no disk that can be throttled"
fi

note "a command of one's own, and a rerun"
mkdir project
cd project
# shellcheck disable=SC2016  # for the shell inside
job=(sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done >>out')
compare tools --sides bare,builtin --rows command --budget 3s --price builtin=3.6 --json-file ../own.json -- "${job[@]}" >../table 2>../err
cd ..
holds "$(wc -l <project/out) >= 4" "it ran in the person's folder"
for side in bare builtin; do
  holds "$(value own.json command.cpu "$side" .summary.median) > 0" "processor time on $side"
  holds "$(value own.json command.memory "$side" .summary.median) > 100000" "memory on $side"
  holds "$(value own.json command.wall "$side" .summary.median) >= $(value own.json command.cpu "$side" .summary.median) * 0.5" "wall time on $side"
done
holds "$(value own.json cost.command builtin .summary.median) - $(value own.json command.wall builtin .summary.median) | fabs < 1e-6" "cost"
samples=$(jq '[.rows[].sides[].samples[]?] | length' one.json)
compare tools --tools tools --sides builtin --rows start.user --budget 2s --json-file one.json >table 2>err
equal "sessions" 2 "$(jq '.sessions | length' one.json)"
holds "$(jq '[.rows[].sides[].samples[]?] | length' one.json) > $samples" "samples are added"
equal "another session's side" null "$(value one.json start.user builtin .relation)"
"$root/tests/schema/check.py" <one.json
"$root/tests/schema/check.py" <own.json

note "what it refuses, and what it shows"
failing_with usage compare --json tools --sides builtin --rows start.user --option vm=--cpus=1
failing_with io compare --json tools --sides builtin --rows start.user --json-file .
equal "who may read a file" 600 "$(stat -c %a one.json)"
failing_with other-comparison compare --json tools --sides builtin --rows start.user --cpus 1 --budget 1s --json-file one.json
mkdir -p "$MLENV_STORE/compare"
exec 8>"$MLENV_STORE/compare/lock"
flock 8
failing_with comparing compare --json tools --sides builtin --rows start.user
exec 8>&-
compare --show one.json --markdown >page.md
grep -q '^| start, to the first instruction |' page.md || fail "$(cat page.md)"
compare --show one.json --html page.html >table
equal "pages in one file" 0 "$(grep -cE '<(script src|link|img|iframe)' page.html || true)"

script -qec "stty cols 70; $MLENV compare --show one.json" /dev/null >narrow </dev/null
grep -q '^start, to the first instruction' narrow || fail "$(cat narrow)"
equal "widest line of a side in a narrow terminal" 1 "$(awk '/^  (bare|built)/ && length > most { most = length } END { print (most > 0 && most <= 71) }' narrow)"
! grep -q '^ROW' narrow || fail "the wide table: $(cat narrow)"
script -qec "stty cols 200; $MLENV compare --show one.json" /dev/null >wide </dev/null
grep -q '^ROW' wide || fail "not as a table: $(cat wide)"

note "secrets; with --long, a row that follows from another one"
if [ "$MLENV_TEST_LONG" = 1 ]; then
  compare tools --quick --rows memory.density --sides builtin --budget 15s --json-file density.json >table 2>err
  equal "rows" "memory.added memory.density" "$(jq -r '[.rows[].id] | join(" ")' density.json)"
fi
compare tools --rows command --sides builtin --budget 2s --json-file secret.json -- sh -c true --token hidden-word >table 2>err
! grep -q hidden-word secret.json || fail "a secret is in the file"
equal "the command" "sh -c true --token ***" "$(jq -r '.terms.command | join(" ")' secret.json)"

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "what was not built in this store is not started on the bare host by itself, whatever its labels say"
  mkdir other
  find "$MLENV_STORE" -mindepth 1 -maxdepth 1 ! -name keys ! -name trees ! -name compare -exec cp -a --reflink=auto -t other {} +
  as_root env MLENV_STORE="$work/other" "$MLENV" -q compare tools --rows stop --budget 1s --json-file other.json >table 2>err
  jq -r '.sides[] | select(.id == "bare") | .why' other.json >why
  grep -q 'was not built here' why || fail "it ran on the bare host: $(cat table)"
fi

note "interrupted, it shows what is there"
in_background() { # in_background ARGUMENT…: of compare; its own id is in the file `id`
  rm -f id
  # shellcheck disable=SC2016  # for that shell
  as_root sh -c 'echo $$ >id; exec "$@"' sh env MLENV_STORE="$MLENV_STORE" "$MLENV" -q compare "$@" >table 2>err &
  compared=$!
}
in_background tools --sides builtin --rows start.user,command --budget 60s --json-file cut.json -- sleep "31.$$"
wait_until 30 pgrep -f "^sleep 31.$$\$"
as_root kill -TERM "$(cat id)"
status=0
wait "$compared" || status=$?
equal "status" 143 "$status"
equal "the command's row" interrupted "$(value cut.json command.wall builtin .why)"
"$root/tests/schema/check.py" <cut.json
! pgrep -f "^sleep 31.$$\$" >/dev/null || fail "the command goes on"

note "a snapshot, and what a cold start reads"
compare tools --quick --sides bare,builtin --rows snapshot,start.cold --budget 10s --json-file snapshot.json >table 2>err
holds "$(value snapshot.json snapshot.size builtin .summary.low) >= 33554432" "what was written is kept"
holds "$(value snapshot.json snapshot.size builtin .summary.high) < 40e6" "nothing else is"
holds "$(value snapshot.json snapshot.time builtin .summary.median) > 0" "a snapshot's time"
equal "a snapshot of the bare host" "what is written on a bare host is nowhere apart" "$(value snapshot.json snapshot.time bare .why)"
equal "kept layers" "" "$(as_root find "$MLENV_STORE/kept" -mindepth 1 -maxdepth 1 ! -name '*.lock' 2>/dev/null)"
holds "$(value snapshot.json start.cold builtin .summary.count) >= 1" "cold starts"

note "killed outright, it leaves neither its command nor a daemon of that behind"
for side in bare builtin; do
  in_background tools --sides "$side" --rows command --budget 60s --json-file killed.json -- \
    sh -c "setsid sleep 32.$$ & sleep 33.$$"
  wait_until 30 pgrep -f "^sleep 32.$$\$"
  wait_until 30 pgrep -f "^sleep 33.$$\$"
  as_root kill -KILL "$(cat id)"
  wait "$compared" || true
  gone() { ! pgrep -f "^sleep 3[23].$$\$"; }
  wait_until 20 gone
done
compare tools --sides builtin --rows stop --budget 1s --json-file killed.json >table 2>err # takes its records away

if [ "$MLENV_TEST_LONG" = 1 ]; then
  note "the same tool in a container made by hand"
  need umoci
  "$MLENV" save tools oci:layout
  as_root umoci unpack --image layout:latest bundle >/dev/null
  as_root chmod 755 bundle
  by_hand() { # by_hand LABEL WORD…: the number behind LABEL in what sysbench prints
    local label=$1
    shift
    jq --argjson words "$(printf '%s\n' "$@" | jq -R . | jq -s .)" \
      '.process.args = $words | .process.terminal = false | del(.linux.resources)' bundle/config.json >config.new
    as_root cp config.new bundle/config.json
    as_root runc run --bundle bundle "compare-$$" | sed -nE "s/.*$label *\(?([0-9.]+).*/\1/p"
  }
  compare tools --tools tools --sides builtin --rows cpu.integer,cpu.all,memory.bandwidth --budget 60s --json-file tool.json >table 2>err
  near() { # near ROW SCALE LABEL WORD…: ranges of both overlap, with a tenth for the machine's noise
    local row=$1 scale=$2
    shift 2
    for _ in 1 2 3 4 5 6; do by_hand "$@"; done |
      jq -es --argjson scale "$scale" --argjson ours "$(value tool.json "$row" builtin .summary)" \
        'map(. * $scale) | min < $ours.high * 1.1 and max > $ours.low * 0.9' >/dev/null || fail "$row is another by hand"
  }
  near cpu.integer 1 'events per second:' sysbench cpu --threads=1 --time=1 run
  near cpu.all 1 'events per second:' sysbench cpu --threads="$(nproc)" --time=1 run
  near memory.bandwidth 1048576 'MiB transferred' sysbench memory --memory-block-size=64M --memory-total-size=1T --time=1 run

  note "Docker and podman"
  make_user
  start_docker
  podman_settings
  as_engine_root env MLENV_STORE="$MLENV_STORE" "$MLENV" -q compare tools --sides bare,builtin,docker,podman --rows start.user,stop \
    --budget 60s --json-file engines.json >table 2>err
  for side in docker podman; do
    holds "$(value engines.json start.user "$side" .summary.count) >= 5" "starts with $side: $(cat table)"
  done
  as_engine_root env MLENV_STORE="$MLENV_STORE" "$MLENV" -q compare tools --sides docker,podman --rows start.cold,snapshot \
    --budget 40s --json-file engines2.json >table 2>err
  for side in docker podman; do
    holds "$(value engines2.json start.cold "$side" .summary.count) >= 1" "cold starts with $side: $(cat table)"
    holds "$(value engines2.json snapshot.size "$side" .summary.low) >= 33e6" "a snapshot with $side: $(cat table)"
  done
  cat table

  note "an image that a killed comparison left with an engine goes with the next one, and nobody else's does"
  cat >"$programs/docker" <<WRAPPER
#!/usr/bin/env bash
if [ "\$1" = commit ]; then
  $(command -v docker) "\$@" >/dev/null
  kill -KILL "\$(cat "$work/id")"
  exit 1
fi
exec $(command -v docker) "\$@"
WRAPPER
  chmod 755 "$programs/docker"
  left() { as_root docker --host "$DOCKER_HOST" image ls --quiet --filter "label=dev.mlenv.compare$1" | wc -l; }
  # shellcheck disable=SC2016  # for that shell
  as_engine_root sh -c 'echo $$ >id; exec "$@"' sh env "PATH=$programs:$PATH" MLENV_STORE="$MLENV_STORE" "$MLENV" -q compare tools \
    --sides docker --rows snapshot --budget 20s --json-file left.json >table 2>err && fail "it was not killed: $(cat table)"
  equal "images that it left" 1 "$(left '')"
  tar -cT /dev/null | as_root docker --host "$DOCKER_HOST" import --change 'LABEL dev.mlenv.compare=somebody' - >/dev/null
  as_engine_root env MLENV_STORE="$MLENV_STORE" "$MLENV" -q compare tools --sides docker --rows snapshot --budget 10s \
    --json-file left.json >table 2>err
  equal "images of others" 1 "$(left '=somebody')"
  equal "images with the label" 1 "$(left '')"

  note "the page in a browser"
  need node npm chromium
  cp "$root"/tests/support/node/*.json "$root"/tests/support/node/compare_page.js .
  npm ci --silent --ignore-scripts --cache "$XDG_CACHE_HOME/npm"
  mkdir shots
  timeout 240 node compare_page.js "$(command -v chromium)" "$work/page.html" "$work/shots"
  [ -z "${MLENV_TEST_SCREENSHOT:-}" ] || cp shots/desktop.png "$MLENV_TEST_SCREENSHOT"
fi

note "nothing is left"
equal "records" "" "$(as_root find "$MLENV_STORE/runs" -mindepth 1 -maxdepth 1 -name '2*' 2>/dev/null)"
"$MLENV" images >/dev/null # the next one sweeps what a killed run left
equal "scratch folders" "" "$(as_root find "$MLENV_STORE/tmp" -mindepth 1 -maxdepth 1 2>/dev/null)"
verify_store
