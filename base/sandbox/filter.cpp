#include "base/sandbox/filter.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/call_filter.hpp"
#include "base/confinement.hpp"
#include "base/error.hpp"

namespace mlenv::sandbox {
namespace {

struct Watched {
  const char* name;
  Call call;
};

constexpr std::array kWatched{
    Watched{"chown", Call::chown},
    Watched{"lchown", Call::lchown},
    Watched{"fchown", Call::fchown},
    Watched{"fchownat", Call::fchownat},
    Watched{"stat", Call::stat},
    Watched{"lstat", Call::lstat},
    Watched{"fstat", Call::fstat},
    Watched{"newfstatat", Call::newfstatat},
    Watched{"statx", Call::statx},
    Watched{"setxattr", Call::setxattr},
    Watched{"lsetxattr", Call::lsetxattr},
    Watched{"fsetxattr", Call::fsetxattr},
    Watched{"getxattr", Call::getxattr},
    Watched{"lgetxattr", Call::lgetxattr},
    Watched{"fgetxattr", Call::fgetxattr},
    Watched{"removexattr", Call::removexattr},
    Watched{"lremovexattr", Call::lremovexattr},
    Watched{"fremovexattr", Call::fremovexattr},
    Watched{"chroot", Call::chroot},
};

// Identities: there is only one here, and it may do all that these would give or take away.
// getgroups: none, instead of the caller's own, which the namespace shows as 65534.
// Flushing: the tree is thrown away if the machine goes down, and made durable later as a whole.
constexpr std::array kSucceed{"setuid",    "setgid",         "setreuid", "setregid",  "setresuid",
                              "setresgid", "setfsuid",       "setfsgid", "setgroups", "capset",
                              "getgroups", "sync",           "syncfs",   "fsync",     "fdatasync",
                              "msync",     "sync_file_range"};

/// Calls that would go round the supervisor; those who know them have another way (ENOSYS).
constexpr std::array<std::string_view, 4> kUnwatched{"setxattrat", "getxattrat", "listxattrat",
                                                     "removexattrat"};

/// Without namespaces of its own a program would reach mlenv's process by these, and its files.
constexpr std::array<std::string_view, 4> kAtOthers{"ptrace", "process_vm_readv",
                                                    "process_vm_writev", "chroot"};

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t answering(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

void add_devices(CallFilter& rules) {
  constexpr std::array<mode_t, 6> kNodes = {0, S_IFREG, S_IFIFO, S_IFSOCK, S_IFDIR, S_IFLNK};
  constexpr std::array<mode_t, 2> kDevices = {S_IFCHR, S_IFBLK};
  for (const unsigned argument : {1U, 2U}) {
    const std::string_view name = argument == 1 ? "mknod" : "mknodat";
    for (const mode_t type : kNodes) rules.add_when(kAllow, {name, argument, type, S_IFMT});
    for (const mode_t type : kDevices) rules.add_when(answering(0), {name, argument, type, S_IFMT});
  }
}

void add_sockets(CallFilter& rules, bool isolate_network) {
  const auto family = [&](std::uint32_t action, int number) {
    rules.add_when(action, {.name = "socket", .value = static_cast<std::uint32_t>(number)});
  };
  for (const int number : refused_families()) family(answering(EAFNOSUPPORT), number);
  if (!isolate_network) return;
  for (const int number : {AF_UNIX, AF_NETLINK}) family(kAllow, number);
  for (const int number : {AF_INET, AF_INET6, AF_PACKET}) family(answering(EAFNOSUPPORT), number);
}

/// Calls of another ABI (i386, x32) would go round the supervisor: ENOSYS, as of what is not named.
std::string build_filter(const FilterTerms& terms) {
  CallFilter rules{answering(ENOSYS)};
  if (terms.shares_host) rules.add(answering(EPERM), kAtOthers);
  if (terms.supervised) {
    for (const Watched& watched : kWatched) rules.add_one(SECCOMP_RET_USER_NOTIF, watched.name);
    rules.add(answering(0), kSucceed);
    rules.add(answering(ENOSYS), kUnwatched);
    add_devices(rules);
  }
  add_sockets(rules, terms.shares_host);
  for (const CallCondition& condition : allowed_when()) {
    if (terms.shares_host && condition.name == "socket") continue;
    rules.add_when(kAllow, condition);
  }
  for (const std::string_view name : allowed_calls()) {
    if (terms.supervised && name.starts_with("mknod")) continue;
    rules.add_one(kAllow, name);
  }
  rules.add(kAllow, ownership_calls());
  rules.add(answering(EPERM), refused_calls());
  return rules.program(std::array{own_abi()});
}

}  // namespace

std::vector<Call> watched_calls() {
  std::vector<Call> calls;
  for (const Watched& watched : kWatched) {
    const std::optional<std::uint32_t> index = call_number(own_abi(), watched.name);
    if (!index) continue;
    if (*index >= calls.size()) calls.resize(*index + 1, Call::none);
    calls[*index] = watched.call;
  }
  return calls;
}

namespace {

/// The notification descriptor, where `flags` ask for one.
long set_filter(const sock_fprog& program, unsigned flags) {
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

}  // namespace

Fd install_filter(const FilterTerms& terms) {
  std::string bytes = build_filter(terms);
  const sock_fprog program{static_cast<unsigned short>(bytes.size() / sizeof(sock_filter)),
                           reinterpret_cast<sock_filter*>(bytes.data())};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    throw os_error(errno, "cannot give up new privileges");
  }
  if (!terms.supervised) {
    if (set_filter(program, 0) == 0) return {};
    throw failure("sandbox-failed", "cannot filter system calls").because(errno_text(errno));
  }
  // With WAIT_KILLABLE_RECV (Linux 5.19) an ordinary signal does not make a call start over.
  constexpr unsigned kListener = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  constexpr unsigned kWaitKillable = 1U << 5U;
  for (const unsigned flags : {kListener | kWaitKillable, kListener}) {
    const long fd = set_filter(program, flags);
    if (fd >= 0) return Fd{static_cast<int>(fd)};
    if (errno != EINVAL) break;
  }
  const int error = errno;
  throw failure("sandbox-failed", "cannot have system calls answered by a supervisor")
      .because(error == EBUSY ? "another supervisor is already at work on this process"
                              : errno_text(error));
}

}  // namespace mlenv::sandbox
