#!/usr/bin/env bash
# First process of a node of the test bed (nodes.sh): makes the node's own view of the machine, says
# so in BED/NAME/up, and reaps.
#   node_init.sh BED NAME FOLDER-TO-KEEP-VISIBLE…
set -euo pipefail
bed=$1 name=$2
shift 2
own=$bed/$name
hostname "$name"

# A new sysfs shows this network; control groups are the machine's.
groups=$own/groups
mkdir -p "$groups"
mount --rbind /sys/fs/cgroup "$groups"
mount -t sysfs sysfs /sys
mount --rbind "$groups" /sys/fs/cgroup
umount -R "$groups"

mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/sshd /run/munge /run/lock
mount --bind "$bed/hosts" /etc/hosts
if [ -e "$own/noexec-home" ]; then
  mount -t tmpfs -o noexec tmpfs "$own/root"
  cp -a "$own/root.template/." "$own/root/" 2>/dev/null || true
fi
# A checkout in /root stays in sight there.
for folder in "$@"; do
  case $folder in
    /root/*)
      mkdir -p "$own/root/${folder#/root/}"
      mount --rbind "$folder" "$own/root/${folder#/root/}"
      ;;
  esac
done
mount --rbind "$own/root" /root
if [ -d "$bed/slurm" ]; then mount --bind "$bed/slurm" /etc/slurm; fi
# Last, since it hides what lies in /tmp: the test's folder and the checkout, perhaps.
for folder in "$@"; do
  case $folder in
    /tmp/*)
      mkdir -p "$own/tmp/${folder#/tmp/}"
      mount --rbind "$folder" "$own/tmp/${folder#/tmp/}"
      ;;
  esac
done
mount --rbind "$own/tmp" /tmp

touch "$own/up"
while :; do
  sleep infinity &
  wait
done
