#include "runner/local/seccomp.hpp"

#include <sched.h>
#include <sys/socket.h>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace mlenv {
namespace {

using Json = nlohmann::json;

/// Names that an architecture does not have are skipped by the runtime.
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
  getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1
  inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioctl
  ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self
  lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise
  map_shadow_stack mbind membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat
  mlock mlock2 mlockall mmap modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive
  mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap
  name_to_handle_at nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe
  pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64
  process_mrelease process_vm_readv process_vm_writev pselect6 ptrace pwrite64 pwritev pwritev2 read
  readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename
  renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
  rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo arch_prctl
  sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
  sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
  sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg
  sendmsg sendto set_mempolicy set_mempolicy_home_node set_robust_list set_thread_area
  set_tid_address setfsgid setfsuid setgid setitimer setpgid setpriority setregid setresgid
  setresuid setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl shmdt shmget shutdown
  sigaltstack signalfd signalfd4 socketpair splice stat statfs statx symlink symlinkat sync
  sync_file_range sync_file_range2 syncfs sysinfo tee tgkill time timer_create timer_delete
  timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times
  tkill truncate umask uname unlink unlinkat utime utimensat utimes vfork vmsplice wait4 waitid write
  writev)";

constexpr std::string_view kOwnership = "chown fchown fchownat lchown setgroups";

/// clone(2) flags that would make a namespace; CLONE_NEWTIME shares its bit with the exit signal.
constexpr std::uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  constexpr std::string_view kBlanks = " \n";
  while (true) {
    const std::size_t start = text.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return result;
    const std::size_t end = text.find_first_of(kBlanks, start);
    result.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return result;
    text.remove_prefix(end);
  }
}

Json allow_when(const char* name, int index, std::uint64_t value, const char* compare) {
  return {{"names", {name}},
          {"action", "SCMP_ACT_ALLOW"},
          {"args", {{{"index", index}, {"value", value}, {"op", compare}}}}};
}

Json answer(std::vector<std::string> names, int error) {
  return {{"names", std::move(names)}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", error}};
}

}  // namespace

Json seccomp_profile(std::string_view architecture, bool pretend_owners) {
  std::vector<std::string> allowed = words(kAllowed);
  Json rules = Json::array();
  if (pretend_owners) {
    rules.push_back(answer(words(kOwnership), 0));
  } else {
    for (std::string& name : words(kOwnership)) allowed.push_back(std::move(name));
  }
  rules.push_back({{"names", std::move(allowed)}, {"action", "SCMP_ACT_ALLOW"}});
  Json clone = allow_when("clone", 0, kNamespaces, "SCMP_CMP_MASKED_EQ");
  clone["args"][0]["valueTwo"] = 0;
  rules.push_back(std::move(clone));
  // Its flags lie in memory, where a filter cannot look: programs fall back to clone.
  rules.push_back(answer({"clone3"}, ENOSYS));
  rules.push_back(allow_when("socket", 0, AF_VSOCK, "SCMP_CMP_NE"));
  // personality(2): Linux, 32-bit addresses, uname 2.6, both, and the question alone.
  for (const std::uint64_t persona : {0x0U, 0x8U, 0x20000U, 0x20008U, 0xffffffffU}) {
    rules.push_back(allow_when("personality", 0, persona, "SCMP_CMP_EQ"));
  }
  return {{"defaultAction", "SCMP_ACT_ERRNO"},
          {"defaultErrnoRet", EPERM},
          {"architectures", {architecture == "arm64" ? "SCMP_ARCH_AARCH64" : "SCMP_ARCH_X86_64"}},
          {"syscalls", std::move(rules)}};
}

}  // namespace mlenv
