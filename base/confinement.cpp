#include "base/confinement.hpp"

#include <linux/capability.h>
#include <sched.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>

#include "base/files.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kAllowed = R"(
  accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chroot
  clock_adjtime clock_getres clock_gettime clock_nanosleep close close_range connect copy_file_range
  creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2
  epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2
  fadvise64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fcntl fdatasync fgetxattr
  flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue
  futex_wait futex_waitv futex_wake futimesat get_mempolicy get_robust_list get_thread_area getcpu
  getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp
  getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname
  getsockopt gettid gettimeofday getuid getxattr getxattrat inotify_add_watch inotify_init
  inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit
  ioctl ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self
  lgetxattr link linkat listen listmount listxattr listxattrat llistxattr lremovexattr lseek
  lsetxattr lstat madvise map_shadow_stack mbind membarrier memfd_create memfd_secret mincore mkdir
  mkdirat mknod mknodat mlock mlock2 mlockall mmap modify_ldt mprotect mq_getsetattr mq_notify
  mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync
  munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause
  pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl
  pread64 preadv preadv2 prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6
  ptrace pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg
  recvmsg remap_file_pages removexattr removexattrat rename renameat renameat2 restart_syscall
  riscv_hwprobe rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
  rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo arch_prctl sched_get_priority_max
  sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
  sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler
  sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto
  set_mempolicy set_mempolicy_home_node set_robust_list set_thread_area set_tid_address setfsgid
  setfsuid setgid setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit
  setsid setsockopt setuid setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack
  signalfd signalfd4 socketpair splice stat statfs statmount statx symlink symlinkat sync
  sync_file_range sync_file_range2 syncfs sysinfo tee tgkill time timer_create timer_delete
  timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times
  tkill truncate umask uname unlink unlinkat uretprobe utime utimensat utimes vfork vmsplice wait4
  waitid write writev

  _llseek _newselect clock_adjtime64 clock_getres_time64 clock_gettime64 clock_nanosleep_time64
  fadvise64_64 fcntl64 fstat64 fstatat64 fstatfs64 ftruncate64 futex_time64 getegid32 geteuid32
  getgid32 getgroups32 getresgid32 getresuid32 getuid32 io_pgetevents_time64 ipc lstat64 mmap2
  mq_timedreceive_time64 mq_timedsend_time64 ppoll_time64 pselect6_time64 recv recvmmsg_time64
  rt_sigtimedwait_time64 sched_rr_get_interval_time64 semtimedop_time64 send sendfile64 setfsgid32
  setfsuid32 setgid32 setregid32 setresgid32 setresuid32 setreuid32 setuid32 sigaction signal
  sigpending sigprocmask sigreturn sigsuspend socketcall stat64 statfs64 timer_gettime64
  timer_settime64 timerfd_gettime64 timerfd_settime64 truncate64 ugetrlimit utimensat_time64 waitpid

  arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls)";

constexpr std::string_view kOwnership =
    "chown chown32 fchown fchown32 fchownat lchown lchown32 setgroups setgroups32";

// Each costs time when a container starts: those that programs try, and take ENOSYS of for a broken
// machine.
constexpr std::string_view kRefused = R"(
  add_key bpf clock_settime fanotify_init init_module keyctl kexec_load mount move_mount
  open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root quotactl reboot request_key
  setdomainname sethostname setns settimeofday swapoff swapon syslog umount umount2 unshare
  userfaultfd vhangup)";

/// clone(2) flags that would make a namespace; CLONE_NEWTIME shares its bit with the exit signal.
constexpr std::uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// clone3(2) has its flags in memory, where a filter cannot look: it answers ENOSYS, and programs
// fall back to clone.
// Of the socket families AF_ALG (the kernel's ciphers: CVE-2026-31431) and AF_VSOCK (the machine
// below, or virtual machines on this one) are out.
// personality(2): Linux, 32-bit addresses, uname 2.6, both, and the question alone.
constexpr std::array kAllowedWhen{
    CallCondition{"clone", 0, 0, kNamespaces},
    // All families but those two, as ranges of numbers.
    CallCondition{"socket", 0, 0, ~std::uint32_t{31}},
    CallCondition{"socket", 0, 32, ~std::uint32_t{3}},
    CallCondition{"socket", 0, 36, ~std::uint32_t{1}},
    CallCondition{"socket", 0, 39},
    CallCondition{"socket", 0, 41},
    CallCondition{"socket", 0, 42, ~std::uint32_t{1}},
    CallCondition{"socket", 0, 44, ~std::uint32_t{3}},
    CallCondition{"socket", 0, 48, ~std::uint32_t{15}},
    CallCondition{"personality", 0, 0x0},
    CallCondition{"personality", 0, 0x8},
    CallCondition{"personality", 0, 0x20000},
    CallCondition{"personality", 0, 0x20008},
    CallCondition{"personality", 0, 0xffffffff},
};
static_assert(AF_ALG == 38 && AF_VSOCK == 40);

constexpr std::array kRefusedFamilies{AF_ALG, AF_VSOCK};

constexpr std::array kCapabilities{Capability{"CAP_AUDIT_WRITE", CAP_AUDIT_WRITE},
                                   Capability{"CAP_CHOWN", CAP_CHOWN},
                                   Capability{"CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE},
                                   Capability{"CAP_FOWNER", CAP_FOWNER},
                                   Capability{"CAP_FSETID", CAP_FSETID},
                                   Capability{"CAP_KILL", CAP_KILL},
                                   Capability{"CAP_MKNOD", CAP_MKNOD},
                                   Capability{"CAP_NET_BIND_SERVICE", CAP_NET_BIND_SERVICE},
                                   Capability{"CAP_NET_RAW", CAP_NET_RAW},
                                   Capability{"CAP_SETFCAP", CAP_SETFCAP},
                                   Capability{"CAP_SETGID", CAP_SETGID},
                                   Capability{"CAP_SETPCAP", CAP_SETPCAP},
                                   Capability{"CAP_SETUID", CAP_SETUID},
                                   Capability{"CAP_SYS_CHROOT", CAP_SYS_CHROOT}};

constexpr std::array kHidden{"/proc/acpi",
                             "/proc/asound",
                             "/proc/interrupts",
                             "/proc/kcore",
                             "/proc/keys",
                             "/proc/latency_stats",
                             "/proc/sched_debug",
                             "/proc/scsi",
                             "/proc/timer_list",
                             "/proc/timer_stats",
                             "/sys/devices/virtual/powercap",
                             "/sys/firmware",
                             "/sys/fs/selinux"};

constexpr std::array<std::string_view, 5> kReadOnly{"/proc/bus", "/proc/fs", "/proc/irq",
                                                    "/proc/sys", "/proc/sysrq-trigger"};

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  constexpr std::string_view kBlanks = " \n";
  while (true) {
    const std::size_t start = text.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return result;
    const std::size_t end = text.find_first_of(kBlanks, start);
    result.push_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return result;
    text.remove_prefix(end);
  }
}

}  // namespace

std::vector<std::string_view> allowed_calls() { return words(kAllowed); }
std::vector<std::string_view> ownership_calls() { return words(kOwnership); }
std::span<const CallCondition> allowed_when() { return kAllowedWhen; }
std::vector<std::string_view> refused_calls() { return words(kRefused); }
std::span<const int> refused_families() { return kRefusedFamilies; }
std::span<const Capability> default_capabilities() { return kCapabilities; }
std::span<const std::string_view> read_only_paths() { return kReadOnly; }

std::vector<std::string> hidden_paths() {
  std::vector<std::string> paths{kHidden.begin(), kHidden.end()};
  // How often each processor was throttled tells of the work of others (Intel alone has it).
  const fs::path processors = "/sys/devices/system/cpu";
  std::error_code error;
  if (!fs::exists(processors / "cpu0/thermal_throttle", error)) return paths;
  for (fs::directory_iterator entry{processors, error}; !error && entry != fs::directory_iterator{};
       entry.increment(error)) {
    const fs::path folder = entry->path() / "thermal_throttle";
    std::error_code absent;
    if (fs::exists(folder, absent)) paths.push_back(folder.string());
  }
  std::sort(paths.begin() + kHidden.size(), paths.end());
  return paths;
}

}  // namespace mlenv
