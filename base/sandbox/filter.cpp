#include "base/sandbox/filter.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/confinement.hpp"
#include "base/error.hpp"
#include "base/files.hpp"

namespace mlenv::sandbox {
namespace {

using Filter = Owned<::seccomp_release>::of<void>;

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

/// Newer than the libseccomp that we are built with; of one number on all architectures.
struct NewCall {
  std::string_view name;
  int number;
};
constexpr std::array kNewCalls{NewCall{"process_mrelease", 448},
                               NewCall{"futex_waitv", 449},
                               NewCall{"set_mempolicy_home_node", 450},
                               NewCall{"cachestat", 451},
                               NewCall{"fchmodat2", 452},
                               NewCall{"map_shadow_stack", 453},
                               NewCall{"futex_wake", 454},
                               NewCall{"futex_wait", 455},
                               NewCall{"futex_requeue", 456},
                               NewCall{"statmount", 457},
                               NewCall{"listmount", 458},
                               NewCall{"lsm_get_self_attr", 459},
                               NewCall{"lsm_set_self_attr", 460},
                               NewCall{"lsm_list_modules", 461},
                               NewCall{"mseal", 462},
                               NewCall{"setxattrat", 463},
                               NewCall{"getxattrat", 464},
                               NewCall{"listxattrat", 465},
                               NewCall{"removexattrat", 466},
                               NewCall{"open_tree_attr", 467}};

/// -1 where this architecture has no such call.
int number_of(std::string_view name) {
  const int number = ::seccomp_syscall_resolve_name(std::string(name).c_str());
  if (number >= 0) return number;
  const auto found = std::find_if(kNewCalls.begin(), kNewCalls.end(),
                                  [&](const NewCall& one) { return one.name == name; });
  return number == __NR_SCMP_ERROR && found != kNewCalls.end() ? found->number : -1;
}

void check(int error, std::string_view what) {
  if (error < 0) {
    throw failure("sandbox-failed", "cannot build the system call filter (`{}`)", what)
        .because(errno_text(-error));
  }
}

scmp_compare compare_of(CallCondition::Compare compare) {
  switch (compare) {
    case CallCondition::Compare::less:
      return SCMP_CMP_LT;
    case CallCondition::Compare::greater:
      return SCMP_CMP_GT;
    case CallCondition::Compare::masked_equal:
      return SCMP_CMP_MASKED_EQ;
    case CallCondition::Compare::equal:
      break;
  }
  return SCMP_CMP_EQ;
}

/// A filter in the making: of a call the first rule counts.
class Rules {
 public:
  Rules() : filter_(::seccomp_init(SCMP_ACT_ERRNO(ENOSYS))) {
    if (!filter_) throw failure("sandbox-failed", "cannot build the system call filter");
    // Calls of another ABI (i386, x32) would go round the supervisor.
    check(::seccomp_attr_set(filter_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)),
          "other architectures");
    // 2 is a binary tree instead of a list: every call in the sandbox passes through it.
    check(::seccomp_attr_set(filter_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "binary tree");
  }

  template <class Names>
  void add(std::uint32_t action, const Names& names) {
    for (const auto& name : names) add_one(action, name);
  }

  void add_one(std::uint32_t action, std::string_view name) {
    const int number = number_of(name);
    if (number < 0 || !decided_.insert(number).second) return;
    if (action == SCMP_ACT_ERRNO(ENOSYS)) return;  // as what is not named
    check(::seccomp_rule_add_array(filter_.get(), action, number, 0, nullptr), name);
  }

  /// All conditions of a call together; none of them counts after a rule without one.
  void add_when(std::uint32_t action, const CallCondition& when) {
    const int number = number_of(when.name);
    if (number < 0 || decided_.contains(number)) return;
    const bool masked = when.compare == CallCondition::Compare::masked_equal;
    const scmp_arg_cmp condition{when.argument, compare_of(when.compare),
                                 masked ? when.mask : when.value, masked ? when.value : 0};
    check(::seccomp_rule_add_array(filter_.get(), action, number, 1, &condition), when.name);
  }

  Filter take() && { return std::move(filter_); }

 private:
  Filter filter_;
  std::set<int> decided_;
};

void add_devices(Rules& rules) {
  constexpr std::array<mode_t, 6> kNodes = {0, S_IFREG, S_IFIFO, S_IFSOCK, S_IFDIR, S_IFLNK};
  constexpr std::array<mode_t, 2> kDevices = {S_IFCHR, S_IFBLK};
  for (const unsigned argument : {1U, 2U}) {
    const std::string_view name = argument == 1 ? "mknod" : "mknodat";
    for (const mode_t type : kNodes) {
      rules.add_when(SCMP_ACT_ALLOW,
                     {name, argument, CallCondition::Compare::masked_equal, type, S_IFMT});
    }
    for (const mode_t type : kDevices) {
      rules.add_when(SCMP_ACT_ERRNO(0),
                     {name, argument, CallCondition::Compare::masked_equal, type, S_IFMT});
    }
  }
}

void add_sockets(Rules& rules, bool isolate_network) {
  const auto family = [&](std::uint32_t action, int number) {
    rules.add_when(action, {.name = "socket", .value = static_cast<std::uint64_t>(number)});
  };
  const auto refused = static_cast<std::uint32_t>(SCMP_ACT_ERRNO(EAFNOSUPPORT));
  for (const int number : refused_families()) family(refused, number);
  if (!isolate_network) return;
  for (const int number : {AF_UNIX, AF_NETLINK}) family(SCMP_ACT_ALLOW, number);
  for (const int number : {AF_INET, AF_INET6, AF_PACKET}) family(refused, number);
}

Filter build_filter(const FilterTerms& terms) {
  Rules rules;
  if (terms.shares_host) rules.add(SCMP_ACT_ERRNO(EPERM), kAtOthers);
  if (terms.supervised) {
    for (const Watched& watched : kWatched) rules.add_one(SCMP_ACT_NOTIFY, watched.name);
    rules.add(SCMP_ACT_ERRNO(0), kSucceed);
    rules.add(SCMP_ACT_ERRNO(ENOSYS), kUnwatched);
    add_devices(rules);
  }
  add_sockets(rules, terms.shares_host);
  for (const CallCondition& condition : allowed_when()) {
    if (terms.shares_host && condition.name == "socket") continue;
    rules.add_when(SCMP_ACT_ALLOW, condition);
  }
  for (const std::string_view name : allowed_calls()) {
    if (terms.supervised && name.starts_with("mknod")) continue;
    rules.add_one(SCMP_ACT_ALLOW, name);
  }
  rules.add(SCMP_ACT_ALLOW, ownership_calls());
  rules.add(SCMP_ACT_ERRNO(EPERM), refused_calls());
  return std::move(rules).take();
}

std::string to_program(const Filter& filter) {
  const Fd file{::memfd_create("filter", MFD_CLOEXEC)};
  if (!file) throw os_error(errno, "cannot make a file in memory");
  check(::seccomp_export_bpf(filter.get(), file.get()), "export");
  if (::lseek(file.get(), 0, SEEK_SET) != 0) throw os_error(errno, "cannot read the filter");
  FdSource source{file.get()};
  return read_all(source, sizeof(sock_filter) * BPF_MAXINSNS);
}

}  // namespace

std::vector<Call> watched_calls() {
  std::vector<Call> calls;
  for (const Watched& watched : kWatched) {
    const int number = number_of(watched.name);
    if (number < 0) continue;
    const auto index = static_cast<std::size_t>(number);
    if (index >= calls.size()) calls.resize(index + 1, Call::none);
    calls[index] = watched.call;
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
  std::string bytes = to_program(build_filter(terms));
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
