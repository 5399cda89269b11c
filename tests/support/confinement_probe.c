// What a program is kept from, one fact a line: `KIND NAME VALUE`. Static, run inside containers of mlenv,
// docker and podman and in a build step; whoever compares decides. Nothing that it tries changes anything
// where it is allowed: arguments are senseless, so that a call which is carried out answers EFAULT, EINVAL, EBADF.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* answer(long result) {
  if (result >= 0) return "allowed";
  return errno == EPERM || errno == ENOSYS || errno == EACCES ? "refused" : "allowed";
}

struct Call {
  const char* name;
  long number;
  long a, b, c, d, e;
};
#define BAD (-1L)
static const struct Call calls[] = {
    {"acct", SYS_acct, BAD},
    {"add_key", SYS_add_key, BAD, BAD, 0, 0, KEY_SPEC_SESSION_KEYRING},
    {"bpf", SYS_bpf, 0, BAD, 0},
    {"delete_module", SYS_delete_module, BAD},
    {"fanotify_init", SYS_fanotify_init, BAD, BAD},
    {"finit_module", SYS_finit_module, BAD, BAD, BAD},
    {"fsopen", SYS_fsopen, BAD, BAD},
    {"get_mempolicy", SYS_get_mempolicy, BAD, BAD, 0, 0, BAD},
    {"init_module", SYS_init_module, BAD, 0, BAD},
    {"io_uring_setup", SYS_io_uring_setup, 1, BAD},
    {"kcmp", SYS_kcmp, BAD, BAD, BAD},
    {"kexec_load", SYS_kexec_load, BAD, BAD, BAD, BAD},
    {"keyctl", SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0},
    {"lookup_dcookie", 212, BAD, BAD, BAD},
    {"mount", SYS_mount, BAD, BAD, BAD, 0, 0},
    {"mount_setattr", 442, BAD, BAD, BAD, BAD, BAD},
    {"move_mount", 429, BAD, BAD, BAD, BAD, BAD},
    {"move_pages", SYS_move_pages, 0, 1, BAD, BAD, BAD},
    {"name_to_handle_at", SYS_name_to_handle_at, BAD, BAD, BAD, BAD, BAD},
    {"open_by_handle_at", SYS_open_by_handle_at, BAD, BAD, 0},
    {"open_tree", 428, BAD, BAD, BAD},
    {"perf_event_open", SYS_perf_event_open, BAD, BAD, BAD, BAD, BAD},
    {"personality_compat", SYS_personality, 0x0400000},
    {"pidfd_getfd", 438, BAD, BAD, BAD},
    {"pivot_root", SYS_pivot_root, BAD, BAD},
    {"process_madvise", 440, BAD, BAD, BAD, BAD, BAD},
    {"process_vm_readv", SYS_process_vm_readv, 1, BAD, 1, BAD, 1},
    {"ptrace", SYS_ptrace, BAD, BAD, BAD, BAD},
    {"quotactl", SYS_quotactl, BAD, BAD, BAD, BAD},
    {"reboot", SYS_reboot, 0, 0, 0, 0},
    {"request_key", SYS_request_key, BAD, BAD, 0, 0},
    {"set_mempolicy", SYS_set_mempolicy, BAD, 0, 0},
    {"setdomainname", SYS_setdomainname, BAD, 3},
    {"sethostname", SYS_sethostname, BAD, 3},
    {"setns", SYS_setns, BAD, 0},
    {"settimeofday", SYS_settimeofday, BAD, BAD},
    {"swapoff", SYS_swapoff, BAD},
    {"swapon", SYS_swapon, BAD, 0},
    {"syslog", SYS_syslog, 3, 0, 0},
    {"umount2", SYS_umount2, BAD, 0},
    {"unshare_mount", SYS_unshare, CLONE_NEWNS},
    {"unshare_net", SYS_unshare, CLONE_NEWNET},
    {"unshare_user", SYS_unshare, CLONE_NEWUSER},
    {"userfaultfd", SYS_userfaultfd, 0},
};

struct Family {
  const char* name;
  int number, type;
};
static const struct Family families[] = {
    {"unix", AF_UNIX, SOCK_STREAM}, {"inet", AF_INET, SOCK_STREAM},    {"netlink", AF_NETLINK, SOCK_RAW},
    {"raw", AF_INET, SOCK_RAW},     {"packet", AF_PACKET, SOCK_DGRAM}, {"alg", 38, SOCK_SEQPACKET},
    {"vsock", 40, SOCK_STREAM},
};

static const char* const places[] = {
    "/proc/acpi",           "/proc/asound",          "/proc/bus",         "/proc/fs",
    "/proc/interrupts",     "/proc/irq",             "/proc/kcore",       "/proc/keys",
    "/proc/latency_stats",  "/proc/sched_debug",     "/proc/scsi",        "/proc/sys",
    "/proc/sysrq-trigger",  "/proc/timer_list",      "/proc/timer_stats", "/sys/devices/virtual/powercap",
    "/sys/firmware",        "/sys/fs/cgroup",        "/sys/fs/selinux",   "/sys/kernel",
};

// In a process of its own: what works must not change this one.
static const char* apart(const struct Call* call) {
  const pid_t pid = fork();
  if (pid == 0) {
    const long result = syscall(call->number, call->a, call->b, call->c, call->d, call->e, 0);
    _exit(strcmp(answer(result), "allowed") == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? "killed" : WEXITSTATUS(status) == 0 ? "allowed" : "refused";
}

static void try_clone(const char* name, unsigned long flags) {
  const long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  printf("call %s %s\n", name, answer(pid));
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
}

// Hidden: an empty folder, a device, a file without a byte.
static const char* seen(const char* path) {
  struct stat status;
  char byte;
  if (stat(path, &status) != 0) return "absent";
  if (S_ISCHR(status.st_mode)) return "hidden";
  if (S_ISDIR(status.st_mode)) {
    int count = 0;
    DIR* folder = opendir(path);
    if (folder == NULL) return "hidden";
    while (readdir(folder) != NULL) ++count;
    closedir(folder);
    return count > 2 ? "seen" : "hidden";
  }
  const int fd = open(path, O_RDONLY | O_NONBLOCK);
  const ssize_t count = fd >= 0 ? read(fd, &byte, 1) : -1;
  if (fd >= 0) close(fd);
  return count > 0 ? "seen" : "hidden";
}

static void try_write(const char* path) {
  const int fd = open(path, O_WRONLY);
  printf("write %s %s\n", path, fd >= 0 ? "allowed" : errno == ENOENT ? "absent" : "refused");
  if (fd >= 0) close(fd);
}

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "with-key") == 0) {  // outside: a session keyring with a secret, then the command
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0);
    syscall(SYS_add_key, "user", "login", "SECRET-OF-THE-SESSION", 21, KEY_SPEC_SESSION_KEYRING);
    execvp(argv[2], argv + 2);
    return 9;
  }
  char line[512];
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    char name[32], value[64];
    if (sscanf(line, "%31[A-Za-z]: %63s", name, value) != 2) continue;
    if (strcmp(name, "CapBnd") == 0 || strcmp(name, "CapEff") == 0 || strcmp(name, "CapPrm") == 0) {
      const unsigned long long set = strtoull(value, NULL, 16);
      for (int i = 0; i < 64; ++i) {
        if ((set >> i & 1) != 0) printf("cap %s_%d allowed\n", name, i);
      }
    }
    if (strcmp(name, "NoNewPrivs") == 0 || strcmp(name, "Seccomp") == 0) printf("mode %s %s\n", name, value);
  }
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) printf("call %s %s\n", calls[i].name, apart(&calls[i]));
  try_clone("clone_user", CLONE_NEWUSER);
  try_clone("clone_net", CLONE_NEWNET);
  printf("call clone3 %s\n", answer(syscall(SYS_clone3, 0, 0)));
  for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
    const int fd = socket(families[i].number, families[i].type, 0);
    printf("socket %s %s\n", families[i].name, fd >= 0 ? "allowed" : "refused");
    if (fd >= 0) close(fd);
    // The kernel takes the lower half of this argument, a filter sees all of it.
    const long wide = syscall(SYS_socket, (1L << 32) | families[i].number, (long)families[i].type, 0L);
    printf("socket %s_wide %s\n", families[i].name, wide >= 0 ? "allowed" : "refused");
    if (wide >= 0) close((int)wide);
  }
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) printf("place %s %s\n", places[i], seen(places[i]));
  try_write("/proc/sys/kernel/core_pattern");
  try_write("/proc/sys/kernel/hostname");
  try_write("/proc/sysrq-trigger");
  try_write("/sys/kernel/uevent_helper");
  try_write("/sys/power/state");
  const char* const spaces[] = {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"};
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/ns/%s", spaces[i]);
    const ssize_t size = readlink(path, line, sizeof line - 1);
    line[size > 0 ? size : 0] = 0;
    printf("namespace %s %s\n", spaces[i], line);
  }
  struct dirent** names = NULL;
  const int count = scandir("/dev", &names, NULL, alphasort);
  for (int i = 0; i < count; ++i) {
    struct stat one;
    snprintf(line, sizeof line, "/dev/%s", names[i]->d_name);
    if (stat(line, &one) == 0 && (S_ISCHR(one.st_mode) || S_ISBLK(one.st_mode))) printf("device %s allowed\n", line);
  }
  char text[64] = "";
  const long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", "login", 0);
  const long bytes = key > 0 ? syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text - 1, 0) : -1;
  printf("key login %s\n", bytes > 0 ? "seen" : "hidden");
  return 0;
}
