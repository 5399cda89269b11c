# shellcheck shell=bash
# Scenarios' folders in memory, where the machine has enough of it: files are made and removed in a third of the system
# time that ext4 takes, and nobody waits for a disk. Scenarios whose head says `# on disk`, and all with --long or
# MLENV_TEST_DISK=1, have them on disk, as users do.
# shellcheck disable=SC2154  # work, long: set by tests/run.sh
memory=
memory_record=$work.memory

unmount_memory() {
  local folder sudo=()
  [ -e "$memory_record" ] || return 0
  [ "$(id -u)" -eq 0 ] || sudo=(sudo -n --)
  folder=$(cat "$memory_record")
  if [ -n "$folder" ] && mountpoint -q "$folder"; then "${sudo[@]}" umount -l "$folder" || true; fi
  rmdir "$folder" 2>/dev/null || true
  rm -f "$memory_record"
}

# mount_memory: sets $memory to a new tmpfs, or leaves it empty.
mount_memory() {
  local sudo=() available kibibytes=$((14 << 20))
  unmount_memory # of a run that was killed
  [ "$long" = 0 ] && [ -z "${MLENV_TEST_DISK:-}" ] || return 0
  available=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  [ "$available" -ge "$kibibytes" ] || return 0
  [ "$(id -u)" -eq 0 ] || sudo=(sudo -n --)
  memory=$(mktemp -d /tmp/mt.XXXXXX) # short: sockets have 108 bytes for their path
  echo "$memory" >"$memory_record"
  if "${sudo[@]}" mount -t tmpfs -o "mode=1777,nr_inodes=0,size=$((available * 3 / 4))k" mlenv-tests "$memory" 2>/dev/null; then
    echo "scenarios work in memory"
  else
    unmount_memory
    memory=
  fi
}
