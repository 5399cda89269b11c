#include "runner/vm/guest_files.hpp"

#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr gid_t kNobodyGroup = 65534;

/// A call is refused when one of its arguments, a mode, has one of these bits.
struct Rule {
  unsigned call;
  unsigned argument;
  std::uint32_t bits;
};

std::vector<Rule> rules() {
  constexpr std::uint32_t kUser = S_ISUID;
  constexpr std::uint32_t kNew = S_ISUID | S_ISGID;
  constexpr std::uint32_t kDevice = 0020000;  // of S_IFCHR and S_IFBLK
  constexpr unsigned kFchmodat2 = 452;        // Linux 6.6, the same number everywhere
  std::vector<Rule> all{{SYS_fchmod, 1, kUser},
                        {SYS_fchmodat, 2, kUser},
                        {kFchmodat2, 2, kUser},
                        {SYS_openat, 3, kNew},
                        {SYS_mknodat, 2, kNew | kDevice}};
#ifdef SYS_chmod
  all.insert(all.end(), {{SYS_chmod, 1, kUser},
                         {SYS_open, 2, kNew},
                         {SYS_creat, 1, kNew},
                         {SYS_mknod, 1, kNew | kDevice}});
#endif
  return all;
}

constexpr std::uint32_t offset_of(unsigned argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                    argument * sizeof(std::uint64_t));
}

/// seccomp(2). The low half of an argument is its first on the machines that mlenv knows.
std::vector<sock_filter> filter() {
#if defined(__x86_64__)
  constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#else
  constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif
  constexpr std::uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;
  constexpr std::uint32_t kOtherCalls = 0x40000000;  // of x32, which no program of ours makes
  std::vector<sock_filter> code{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, kRefused),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kOtherCalls, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefused),
  };
  for (const Rule& one : rules()) {
    code.insert(code.end(), {
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one.call, 0, 4),
                                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset_of(one.argument)),
                                BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, one.bits, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, kRefused),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                            });
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return code;
}

}  // namespace

void forbid_privileged_files() {
  for (const int right : {CAP_MKNOD, CAP_SETFCAP, CAP_FSETID}) {
    if (::prctl(PR_CAPBSET_DROP, right, 0, 0, 0) != 0 && errno != EPERM) {
      throw failure("no-namespace", "cannot take rights from the virtual machine")
          .because(errno_text(errno));
    }
  }
  std::vector<sock_filter> code = filter();
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    throw failure("no-namespace", "cannot take rights from the virtual machine")
        .because(errno_text(errno))
        .hint("the kernel needs seccomp filters (CONFIG_SECCOMP_FILTER)");
  }
}

StartedWithoutGroups::StartedWithoutGroups() : umask_(::umask(0)) {
  // In a user namespace of one id there is no other group to be in, and root's is the caller's.
  is_root_ = ::geteuid() == 0 && ::setgroups(0, nullptr) == 0 &&
             ::setresgid(kNobodyGroup, kNobodyGroup, 0) == 0;
}

StartedWithoutGroups::~StartedWithoutGroups() {
  ::umask(umask_);
  if (is_root_) (void)!::setresgid(0, 0, 0);
}

}  // namespace mlenv
