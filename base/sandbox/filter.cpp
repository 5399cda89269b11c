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
#include <array>
#include <cerrno>
#include <string>

#include "base/bytes.hpp"
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

// io_uring does what is watched here without making the calls.
constexpr std::array kAbsent{"io_uring_setup", "io_uring_enter", "io_uring_register"};

/// libseccomp's number, or -1 where this architecture has no such call.
int number_of(const char* name) {
  const int number = ::seccomp_syscall_resolve_name(name);
  return number < 0 ? -1 : number;
}

void check(int error, const char* what) {
  if (error < 0) {
    throw failure("sandbox-failed", "cannot build the system call filter (`{}`)", what)
        .because(errno_text(-error));
  }
}

void add(scmp_filter_ctx filter, std::uint32_t action, const char* name) {
  if (const int number = number_of(name); number >= 0) {
    check(::seccomp_rule_add_array(filter, action, number, 0, nullptr), name);
  }
}

void add_when(scmp_filter_ctx filter, std::uint32_t action, const char* name, scmp_arg_cmp when) {
  if (const int number = number_of(name); number >= 0) {
    check(::seccomp_rule_add_array(filter, action, number, 1, &when), name);
  }
}

void add_devices(scmp_filter_ctx filter) {
  for (const mode_t type : {mode_t{S_IFCHR}, mode_t{S_IFBLK}}) {
    add_when(filter, SCMP_ACT_ERRNO(0), "mknod",
             {1, SCMP_CMP_MASKED_EQ, static_cast<scmp_datum_t>(S_IFMT), type});
    add_when(filter, SCMP_ACT_ERRNO(0), "mknodat",
             {2, SCMP_CMP_MASKED_EQ, static_cast<scmp_datum_t>(S_IFMT), type});
  }
}

Filter build_filter(bool isolate_network) {
  Filter filter{::seccomp_init(SCMP_ACT_ALLOW)};
  if (!filter) throw failure("sandbox-failed", "cannot build the system call filter");
  // Calls of another ABI (i386, x32) would go round the supervisor.
  check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)),
        "other architectures");
  // 2 is a binary tree instead of a list: every call in the sandbox passes through it.
  check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "binary tree");
  for (const Watched& watched : kWatched) add(filter.get(), SCMP_ACT_NOTIFY, watched.name);
  for (const char* name : kSucceed) add(filter.get(), SCMP_ACT_ERRNO(0), name);
  for (const char* name : kAbsent) add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), name);
  add_devices(filter.get());
  if (isolate_network) {
    for (const int family : {AF_INET, AF_INET6, AF_PACKET}) {
      add_when(filter.get(), SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket",
               {0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(family), 0});
    }
  }
  return filter;
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

Fd install_filter(bool isolate_network) {
  std::string bytes = to_program(build_filter(isolate_network));
  sock_fprog program{static_cast<unsigned short>(bytes.size() / sizeof(sock_filter)),
                     reinterpret_cast<sock_filter*>(bytes.data())};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    throw os_error(errno, "cannot give up new privileges");
  }
  // With WAIT_KILLABLE_RECV (Linux 5.19) an ordinary signal does not make a call start over.
  constexpr unsigned kListener = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  constexpr unsigned kWaitKillable = 1U << 5U;
  for (const unsigned flags : {kListener | kWaitKillable, kListener}) {
    const long fd = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (fd >= 0) return Fd{static_cast<int>(fd)};
    if (errno != EINVAL) break;
  }
  const int error = errno;
  throw failure("sandbox-failed", "cannot have system calls answered by a supervisor")
      .because(error == EBUSY ? "another supervisor is already at work on this process"
                              : errno_text(error));
}

}  // namespace mlenv::sandbox
