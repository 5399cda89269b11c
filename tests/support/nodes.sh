# shellcheck shell=bash
# A test bed of several nodes on this machine, for e2e tests: after lib.sh,
#   . "$root/tests/support/nodes.sh"
#   nodes_up 3         node1 … node3 and `head`, from which things are started
#   with_ssh           an sshd on each, its key pinned on `head`
#   with_slurm         munge, slurmctld on `head`, slurmd on the others; all idle
#   on NODE COMMAND…   there, as root, with an environment of its own
#   power_cut NODE     without a last word; power_on NODE: it boots again, the same to its peers
#   nodes_have_small   after small_store or small_tree: each has that image in a store of its own
#   shape NODE RATE    its link both ways, as tc(8) writes rates; `off`
# A node has namespaces of its own of network, mounts, host name, processes and IPC, a private /run,
# /tmp and /root, and eth0 in 10.77.0.0/24 on a bridge in a namespace without any other use. Nothing
# has a name on the machine itself, so that two tests do not meet, and nothing is added to its
# network. All of it ends with the test, however that ends: each first process is killed with its
# parent, this shell.
: "${work:?lib.sh comes first}" "${root:?}"
bed=$work/bed
declare -A bed_pid=() bed_init=() bed_address=()
bed_nodes=()
bed_cables=0

# bed_child PID: its only child.
bed_child() {
  local children
  children=$(tr -d ' ' <"/proc/$1/task/$1/children")
  [ -n "$children" ] && echo "$children"
}

# nodes_down: what finish_test calls.
nodes_down() {
  local name
  for name in "${!bed_pid[@]}"; do
    kill -9 "${bed_pid[$name]}" 2>/dev/null || true
    wait "${bed_pid[$name]}" 2>/dev/null || true
  done
  bed_pid=()
}

nodes_up() {
  need_root
  need ip tc unshare nsenter setpriv
  [ "$(id -u)" -eq 0 ] || skip "nodes of the test bed are made by root"
  local index name
  mkdir -p "$bed"
  setpriv --pdeathsig KILL unshare --net --kill-child=KILL --fork sleep infinity </dev/null >"$bed/switch.log" 2>&1 &
  bed_pid[switch]=$!
  wait_until 20 bed_child "${bed_pid[switch]}"
  bed_init[switch]=$(bed_child "${bed_pid[switch]}")
  in_switch ip link add name switch type bridge
  in_switch ip link set switch up
  bed_nodes=(head)
  for ((index = 1; index <= $1; index++)); do bed_nodes+=("node$index"); done
  echo "127.0.0.1 localhost" >"$bed/hosts"
  index=0
  for name in "${bed_nodes[@]}"; do
    index=$((index + 1))
    bed_address[$name]=10.77.0.$index
    echo "10.77.0.$index $name" >>"$bed/hosts"
  done
  for name in "${bed_nodes[@]}"; do power_on "$name"; done
}

in_switch() { nsenter -t "${bed_init[switch]}" -n "$@"; }

# power_on NODE: boots it; what runs there by itself is started anew.
power_on() {
  local name=$1 own=$bed/$1
  mkdir -p "$own/root/.ssh" "$own/tmp"
  chmod 1777 "$own/tmp"
  chmod 700 "$own/root" "$own/root/.ssh"
  rm -f "$own/up"
  setpriv --pdeathsig KILL unshare --net --mount --uts --pid --ipc --fork --kill-child=KILL --mount-proc \
    --propagation private bash "$root/tests/support/node_init.sh" "$bed" "$name" "$work" "$root" \
    "$(dirname "$MLENV")" </dev/null >>"$own/boot.log" 2>&1 &
  bed_pid[$name]=$!
  wait_until 20 test -e "$own/up"
  bed_init[$name]=$(bed_child "${bed_pid[$name]}")
  bed_cables=$((bed_cables + 1))
  in_switch ip link add "port$bed_cables" type veth peer name eth0 \
    address "02:00:00:00:00:$(printf %02x "${bed_address[$name]##*.}")" netns "${bed_init[$name]}"
  in_switch ip link set "port$bed_cables" master switch up
  on "$name" ip link set lo up
  on "$name" ip addr add "${bed_address[$name]}/24" dev eth0
  on "$name" ip link set eth0 up
  echo "port$bed_cables" >"$own/port"
  if [ -e "$bed/with-ssh" ]; then start_sshd "$name"; fi
  if [ -d "$bed/slurm" ]; then start_slurm "$name"; fi
}

# The cable first, or the kernel would still send the end of each connection.
power_cut() {
  in_switch ip link set "$(cat "$bed/$1/port")" down
  kill -9 "${bed_init[$1]}"
  wait "${bed_pid[$1]}" 2>/dev/null || true
  unset "bed_pid[$1]"
}

# on NODE COMMAND…: as after a login there.
on() {
  local name=$1
  shift
  nsenter -t "${bed_init[$name]}" -m -u -i -n -p -- \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    bed="$bed" work="$work" sh -c 'cd && exec "$@"' on "$@"
}
# on_head COMMAND…: on `head`, in the test's project, with the test's store.
# shellcheck disable=SC2016
on_head() { on head env MLENV_STORE="$MLENV_STORE" sh -c 'cd "$work/project" && exec "$@"' on_head "$@"; }

shape() {
  local name=$1 rate=$2 port
  port=$(cat "$bed/$name/port")
  in_switch tc qdisc del dev "$port" root 2>/dev/null || true
  on "$name" tc qdisc del dev eth0 root 2>/dev/null || true
  [ "$rate" != off ] || return 0
  in_switch tc qdisc add dev "$port" root tbf rate "$rate" burst 64kb limit 2mb
  on "$name" tc qdisc add dev eth0 root tbf rate "$rate" burst 64kb limit 2mb
}

# nodes_have_small: what a job would else send there and unpack, which jobs-copy.sh and nodes-ssh.sh are about. Their
# trees are hard links to those that tests share: no test changes anything in one.
nodes_have_small() {
  local name to from=$MLENV_TEST_SHARED/small
  for name in "${bed_nodes[@]}"; do
    [ "$name" != head ] || continue
    to=$bed/$name/root/.local/share/mlenv
    copy_store "$from" "$to"
    link_trees "$from" "$to" || true
  done
}

# with_ssh: `head` reaches every node as root by a key; each has a host key of its own.
with_ssh() {
  need ssh ssh-keygen
  [ -x /usr/sbin/sshd ] || skip "\`sshd\` is not installed"
  local name
  mkdir -p "$bed/ssh"
  ssh-keygen -q -t ed25519 -N '' -f "$bed/ssh/id"
  for name in "${bed_nodes[@]}"; do
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$bed/ssh/$name"
    echo "$name,${bed_address[$name]} $(cut -d' ' -f1,2 "$bed/ssh/$name.pub")" >>"$bed/ssh/known_hosts"
    install -m 600 "$bed/ssh/id.pub" "$bed/$name/root/.ssh/authorized_keys"
    cat >"$bed/ssh/$name.conf" <<CONFIG
ListenAddress ${bed_address[$name]}
HostKey $bed/ssh/$name
PidFile /run/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
StrictModes no
MaxStartups 100
AuthorizedKeysFile /root/.ssh/authorized_keys
CONFIG
  done
  install -m 600 "$bed/ssh/id" "$bed/head/root/.ssh/id_ed25519"
  install -m 600 "$bed/ssh/known_hosts" "$bed/head/root/.ssh/known_hosts"
  touch "$bed/with-ssh"
  for name in "${bed_nodes[@]}"; do start_sshd "$name"; done
}

start_sshd() { on "$1" /usr/sbin/sshd -f "$bed/ssh/$1.conf" -E "$bed/$1/sshd.log"; }

# with_slurm: nodes with four processors each; requeues, and notices a dead node, within seconds.
with_slurm() {
  need munged slurmctld slurmd sinfo
  [ -d /etc/slurm ] || skip "there is no /etc/slurm to mount the configuration at"
  local name count=$((${#bed_nodes[@]} - 1))
  mkdir -p "$bed/slurm"
  head -c 1024 /dev/urandom >"$bed/munge.key"
  chmod 600 "$bed/munge.key"
  : >"$bed/slurm/plugstack.conf"
  cat >"$bed/slurm/slurm.conf" <<CONFIG
ClusterName=bed
SlurmctldHost=head(${bed_address[head]})
SlurmUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
StateSaveLocation=$bed/slurmctld
SlurmdSpoolDir=$bed/%n/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$bed/slurmctld.log
SlurmdLogFile=$bed/%n/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=5
SlurmctldTimeout=6
InactiveLimit=0
KillWait=3
MinJobAge=300
MessageTimeout=5
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=2
BatchStartTimeout=10
JobRequeue=1
NodeName=node[1-$count] NodeAddr=node[1-$count] CPUs=4 RealMemory=4096 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONFIG
  mkdir -p "$bed/slurmctld"
  for name in "${bed_nodes[@]}"; do
    mkdir -p "$bed/$name/slurmd"
    on "$name" mount --bind "$bed/slurm" /etc/slurm
  done
  for name in "${bed_nodes[@]}"; do start_slurm "$name"; done
  wait_until 30 slurm_idle "$count"
}

start_slurm() {
  mkdir -p "$bed/$1/munge"
  chmod 700 "$bed/$1/munge"
  on "$1" munged --key-file="$bed/munge.key" --force --num-threads=2 --log-file="$bed/$1/munge/log" \
    --seed-file="$bed/$1/munge/seed" --pid-file=/run/munge/pid
  if [ "$1" = head ]; then on head slurmctld; else on "$1" slurmd -N "$1"; fi
}

slurm_idle() { [ "$(on head sinfo -h -t idle -o %D)" = "$1" ]; }
