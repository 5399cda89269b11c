# shellcheck shell=bash disable=SC2154,SC2016 # nodes.sh has bed_nodes; what is quoted is for nodes
# What is there on the nodes of a test bed, before and after: after nodes.sh,
#   . "$root/tests/support/census.sh"
#   group_of_its_own         first: what the test starts has control groups of its own, so that a
#                            group that is left is known to be the test's
#   nodes_up 3 …
#   note_census              what is there now is there by right
#   nothing_left             the same is there again, on each node, within half a minute
# Counted on each node: processes, their namespaces, mounts, ports and sockets that somebody listens
# on, files in the temporary folders of the machine, of the stores and of mlenv-node; and the control
# groups of all of them. A rank's records and images stay by right and are not counted, nor the empty
# folders that OCI runtimes keep for their containers.
: "${bed:?nodes.sh comes first}" "${work:?}" "${root:?}"
census_group=

# group_of_its_own: in each hierarchy that this test may write.
group_of_its_own() {
  local line lines path group
  census_group=bed-$$
  mapfile -t lines <"/proc/$$/cgroup" # each group that is entered makes the file longer
  for line in "${lines[@]}"; do
    path=$(group_folder "$line")
    group=$path/$census_group
    if [ -z "$path" ] || [ ! -w "$path/cgroup.procs" ] || ! mkdir "$group" 2>/dev/null; then continue; fi
    # Version 1 has no processors and no memory nodes for a new group.
    if [ -e "$group/cpuset.cpus" ] && [ ! -e "$group/cgroup.controllers" ]; then
      cat "$path/cpuset.cpus" >"$group/cpuset.cpus"
      cat "$path/cpuset.mems" >"$group/cpuset.mems"
    fi
    echo $$ >"$group/cgroup.procs" 2>/dev/null || rmdir "$group"
  done
  trap 'status=$?; set +e; leave_groups; (exit "$status"); finish_test' EXIT
}

# group_folder LINE: where the group is that a line of /proc/PID/cgroup tells.
group_folder() {
  local controllers path point
  controllers=$(cut -d: -f2 <<<"$1")
  path=$(cut -d: -f3- <<<"$1")
  for point in "/sys/fs/cgroup/$controllers" "/sys/fs/cgroup/${controllers#name=}" \
    "$([ -z "$controllers" ] && echo /sys/fs/cgroup/unified)" /sys/fs/cgroup; do
    if [ -z "$point" ] || [ ! -e "$point$path/cgroup.procs" ]; then continue; fi
    echo "$point${path%/}"
    return
  done
}

# leave_groups: the nodes first, whose processes are in them.
leave_groups() {
  nodes_down
  local group pid
  for group in $(census_groups | LC_ALL=C sort -r) $(find /sys/fs/cgroup -type d -name "$census_group" 2>/dev/null); do
    while read -r pid; do echo "$pid" >"$group/../cgroup.procs" 2>/dev/null; done <"$group/cgroup.procs"
    rmdir "$group" 2>/dev/null
  done
}

# own_group CONTROLLER: the test's own group, where the controller is one of version 1.
own_group() {
  local line
  line=$(grep -E "^[0-9]+:([^:]*,)?$1(,[^:]*)?:" "/proc/$$/cgroup") || return 0
  group_folder "$line"
}

# census_groups: those below the test's own.
census_groups() { find /sys/fs/cgroup -type d -path "*/$census_group/*" 2>/dev/null; }

# census NODE: a line for each thing, sorted.
census() {
  on "$1" env CENSUS=1 store="$MLENV_STORE" root="$root" bash -c '
    for process in /proc/[0-9]*; do
      tr "\0" "\n" <$process/environ 2>/dev/null | grep -qx CENSUS=1 && continue
      command=$(tr "\0" " " <$process/cmdline 2>/dev/null) && [ -n "$command" ] || continue
      echo "process $command"
      for kind in net mnt pid uts ipc user; do
        where=$(readlink $process/ns/$kind) && echo "namespace $where"
      done
    done 2>/dev/null | sort -u
    cut -d" " -f5 /proc/1/mountinfo | grep -v "/mlenv-tests-done\." | sed "s/^/mount /" # of tests that are over
    ss -Hltun | awk "{print \"port \" \$1, \$5}"
    ss -Hlx | awk "{print \"socket \" \$5}"
    find /tmp /run -path "$work" -prune -o -path "$root" -prune -o -path /run/crun -o -path /run/runc -o -print | sed "s/^/file /"
    find /root/.cache/mlenv/node -name ".tmp-*" 2>/dev/null | sed "s/^/file /"
    for one in /root/.local/share/mlenv "$store"; do
      find $one/tmp -mindepth 1 2>/dev/null
      # Names of runs are locked there.
      find $one -mindepth 1 -maxdepth 2 -name ".*" ! -path "$one/runs/.names" 2>/dev/null
    done | sed "s/^/file /"
  ' census | LC_ALL=C sort -u
}

note_census() {
  local name
  for name in "${bed_nodes[@]}"; do census "$name" >"$bed/$name/census"; done
}

same_census() {
  local name status=0
  for name in "${bed_nodes[@]}"; do
    census "$name" >"$bed/$name/census.now"
    LC_ALL=C comm -13 "$bed/$name/census" "$bed/$name/census.now" | sed "s/^/$name: /"
  done >"$bed/left"
  census_groups | sed 's/^/group /' >>"$bed/left"
  [ ! -s "$bed/left" ] || status=1
  return "$status"
}

nothing_left() {
  local deadline=$((SECONDS + 30))
  until same_census; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      fail "left behind${1:+ after $1}: $(cat "$bed/left")"
      break
    fi
    read -rt 0.1 <> <(:) || true
  done
}
