# shellcheck shell=bash disable=SC2154,SC2164 # of nodes.sh; the test has set -e
# Shared storage of a test bed's nodes, for e2e tests: after nodes_up and with_ssh,
#   . "$root/tests/support/storage.sh"
# the store is small_tree's; $work/shared is the storage `scratch`, at $place on each node, if the test says so:
#   mount_on NODE      it is there
#   storage_is WORDS   `storage:` of the site's config.yaml, which on_head heeds
#   said TEXT          mlenv said so
#   testers, no_testers  whether some node's process looks at storage
: "${work:?lib.sh comes first}" "${bed:?nodes.sh comes first}"
# Each node's own /tmp: the folder is there on each, and is one storage only where that is mounted.
place=/tmp/scratch
mkdir -p "$work/project" "$work/shared/bert" "$work/site/mlenv"
cd "$work/project"
for node in "${bed_nodes[@]}"; do on "$node" mkdir -p "$place/bert"; done

mount_on() { on "$1" mount --bind "$work/shared" "$place"; }
storage_is() { echo "storage: $1" >"$work/site/mlenv/config.yaml"; }
# shellcheck disable=SC2016 # the shell there expands it
on_head() { on head env MLENV_STORE="$MLENV_STORE" XDG_CONFIG_HOME="$work/site" sh -c 'cd "$work/project" && exec "$@"' on_head "$@"; }
# In the nodes alone: another test's have theirs.
testers() {
  local node found=1
  for node in "${bed_nodes[@]}"; do
    if on "$node" pgrep -f '[_]_node-work [0-9]+ storage'; then found=0; fi
  done
  return "$found"
}
no_testers() { ! testers; }
said() { grep -qF -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err")"; }
