#!/usr/bin/env bash
# `mlenv data`: newer CUDA releases from an index on loopback are known afterwards; an index that is
# broken, cut, lying or out of reach leaves what is known as it was. Held against uv's own table.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need jq python3
cd "$work"
export XDG_CONFIG_HOME=$work/config

# redistrib VERSION DRIVER [LABEL]: such a file.
redistrib() {
  printf '{"release_date": "2026-12-01", "release_label": "%s", "nvidia_driver": {"name": "driver", "version": "%s", "linux-x86_64": {"relative_path": "x", "sha256": "00"}}}\n' \
    "${3:-$1}" "$2" >"index/redistrib_$1.json"
}
mkdir index
redistrib 13.5.0 620.70.06
redistrib 13.5.1 620.80.01
redistrib 13.6.0 625.10.01
port=$(free_port)
start server.log python3 -m http.server -b 127.0.0.1 -d index "$port"
wait_until 20 curl --noproxy '*' -fs "http://127.0.0.1:$port/"
known() { "$MLENV" data show --json >known.json && jq -c '[.date, .releases]' known.json; }

note "the built-in data"
built_in=$(known)
equal "file" null "$(jq .file known.json)"
failing_with no-index "$MLENV" data update --json # no address is written into the program

note "broken, cut, lying and absent indexes"
for case in '13.6.0 610.10.01' '13.6.0 9999.1' '13.6.0 625.10.01 13.5.0'; do
  # shellcheck disable=SC2086  # words
  redistrib $case
  failing_with redistrib-invalid "$MLENV" data update --json --from "http://127.0.0.1:$port"
done
redistrib 13.6.0 625.10.01
cp index/redistrib_13.6.0.json whole
head -c 100 whole >index/redistrib_13.6.0.json
failing_with redistrib-invalid "$MLENV" data update --json --from "http://127.0.0.1:$port/"
head -c 5000000 /dev/zero >index/redistrib_13.6.0.json
failing_with too-large "$MLENV" data update --json --from "http://127.0.0.1:$port"
failing_with too-large "$MLENV" data update --json --from index
cp whole index/redistrib_13.6.0.json
failing_with http-status "$MLENV" data update --json --from "http://127.0.0.1:$port/nowhere"
failing_with redistrib-invalid "$MLENV" data update --json --from "$work"
failing_with absent "$MLENV" data update --json --from nowhere
failing_with network "$MLENV" data update --json --from "http://127.0.0.1:$(free_port)"
grep -q 'what is in use stays in use' err || fail "does not say so: $(cat err)"
equal "what is known" "$built_in" "$(known)"
[ ! -e "$MLENV_STORE/cuda.toml" ] || fail "a refused index was written"

note "a newer index, by address and by the configuration"
"$MLENV" data update --from "http://127.0.0.1:$port" --json >update.json
equal "added" '[["13.6"],["13.5"],[]]' "$(jq -c '[.added, .extended, .left_out]' update.json)"
known >/dev/null
equal "13.6" '["625.10.01",[]]' "$(jq -c '.releases[0] | [.driver, .updates]' known.json)"
equal "13.5" '["620.70.06",["620.80.01"]]' "$(jq -c '.releases[1] | [.driver, .updates]' known.json)"
mkdir -p config/mlenv
echo "cuda-index: $work/index" >config/mlenv/config.yaml
equal "again" "nothing new" "$("$MLENV" data update | sed 's/;.*//')"

note "an update that cannot be used is passed over"
cp "$MLENV_STORE/cuda.toml" good
# shellcheck disable=SC2016  # sed's own $
for change in 's/"620.70.06"/"620.70.07"/' 's/^date = .*/date = "2020-01-01"/' '/"11.0"/d' 's/release = /relase = /' '/^.sources/,$ d'; do
  sed "$change" good >"$MLENV_STORE/cuda.toml"
  equal "with $change" "$built_in" "$(known)"
  [ "$(jq .passed_over known.json)" != null ] || fail "nothing is said of $change"
done
rm "$MLENV_STORE/cuda.toml"
mkdir "$MLENV_STORE/cuda.toml"
equal "a folder" "$built_in" "$(known)"
if python3 -c 'import jsonschema' 2>/dev/null; then
  cat update.json known.json | python3 "$root/tests/schema/check.py" >/dev/null
fi

note "against uv's own table of drivers"
uv=$(some_uv)
python3 "$root/tests/support/uv_drivers.py" "$uv" known.json
