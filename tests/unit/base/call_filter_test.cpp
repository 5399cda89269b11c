#include "base/call_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <gtest/gtest.h>

#include "runner/local/seccomp.hpp"

namespace mlenv {
namespace {

/// What the kernel would answer (socket(7), BPF as far as the filter uses it).
std::uint32_t kernel_answer(const std::string& program, const seccomp_data& call) {
  std::vector<sock_filter> code(program.size() / sizeof(sock_filter));
  std::memcpy(code.data(), program.data(), program.size());
  std::uint32_t a = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const sock_filter& one = code[at];
    switch (one.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&a, reinterpret_cast<const char*>(&call) + one.k, sizeof a);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= one.k;
        break;
      case BPF_JMP | BPF_JA:
        at += one.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += a == one.k ? one.jt : one.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        at += a >= one.k ? one.jt : one.jf;
        break;
      case BPF_RET | BPF_K:
        return one.k;
      default:
        ADD_FAILURE() << "instruction " << one.code;
        return 0;
    }
  }
  ADD_FAILURE() << "the program has no end";
  return 0;
}

constexpr std::uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kEnosys = SECCOMP_RET_ERRNO | ENOSYS;

std::uint32_t arch_of(CallAbi abi) {
  switch (abi) {
    case CallAbi::i386:
      return AUDIT_ARCH_I386;
    case CallAbi::aarch64:
      return AUDIT_ARCH_AARCH64;
    case CallAbi::arm:
      return AUDIT_ARCH_ARM;
    default:
      return AUDIT_ARCH_X86_64;
  }
}

class ContainerFilter : public ::testing::TestWithParam<CallAbi> {
 protected:
  std::uint32_t of_number(std::uint32_t number, std::uint64_t argument = 0,
                          bool pretend = false) const {
    seccomp_data call{};
    call.nr = static_cast<int>(number);
    call.arch = arch_of(GetParam());
    call.args[0] = argument;
    const bool arm = call.arch == AUDIT_ARCH_AARCH64 || call.arch == AUDIT_ARCH_ARM;
    static std::map<std::pair<bool, bool>, std::string> programs;
    std::string& program = programs[{arm, pretend}];
    if (program.empty()) program = container_filter(arm ? "arm64" : "amd64", pretend);
    return kernel_answer(program, call);
  }
  std::uint32_t of(std::string_view name, std::uint64_t argument = 0, bool pretend = false) const {
    const auto number = call_number(GetParam(), name);
    EXPECT_TRUE(number) << name;
    return of_number(number.value_or(0), argument, pretend);
  }
};

TEST_P(ContainerFilter, AnswersEachCallAsTheListSays) {
  std::map<std::uint32_t, std::uint32_t> expected;
  const auto note = [&](const auto& names, std::uint32_t action) {
    for (const std::string_view name : names) {
      if (const auto number = call_number(GetParam(), name)) expected.emplace(*number, action);
    }
  };
  note(allowed_calls(), SECCOMP_RET_ALLOW);
  note(ownership_calls(), SECCOMP_RET_ALLOW);
  note(refused_calls(), kEperm);
  ASSERT_GT(expected.size(), 250U);
  std::map<std::uint32_t, bool> conditional;
  for (const CallCondition& one : allowed_when()) {
    if (const auto number = call_number(GetParam(), one.name)) conditional[*number] = true;
  }
  const std::uint32_t first = GetParam() == CallAbi::x32 ? 0x40000000 : 0;
  for (std::uint32_t number = first; number < first + 1000; ++number) {
    if (conditional.contains(number)) continue;
    const auto found = expected.find(number);
    EXPECT_EQ(of_number(number), found == expected.end() ? kEnosys : found->second) << number;
  }
  EXPECT_EQ(of_number(~std::uint32_t{0}), kEnosys);
}

TEST_P(ContainerFilter, LooksAtArguments) {
  for (const std::uint64_t upper : {std::uint64_t{0}, std::uint64_t{1} << 32U}) {
    for (const int family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_TIPC, AF_NFC,
                             AF_KCM, AF_QIPCRTR, AF_SMC, AF_XDP, AF_MCTP}) {
      EXPECT_EQ(of("socket", upper | static_cast<std::uint64_t>(family)), SECCOMP_RET_ALLOW)
          << family;
    }
    for (const int family : {AF_ALG, AF_VSOCK}) {
      EXPECT_EQ(of("socket", upper | static_cast<std::uint64_t>(family)),
                SECCOMP_RET_ERRNO | EAFNOSUPPORT)
          << family << " with " << upper;
    }
    EXPECT_EQ(of("clone", upper | CLONE_VM | CLONE_THREAD), SECCOMP_RET_ALLOW);
    EXPECT_EQ(of("clone", upper | CLONE_NEWUSER), kEnosys);
    EXPECT_EQ(of("personality", upper | 0x20008), SECCOMP_RET_ALLOW);
    EXPECT_EQ(of("personality", upper | 0x400000), kEnosys);
  }
}

TEST_P(ContainerFilter, OwnersArePretendedWhereOneIdExists) {
  EXPECT_EQ(of("fchownat", 0, true), SECCOMP_RET_ERRNO | 0U);
  EXPECT_EQ(of("setgroups", 0, true), SECCOMP_RET_ERRNO | 0U);
  EXPECT_EQ(of("fchownat"), SECCOMP_RET_ALLOW);
}

TEST_P(ContainerFilter, RefusesTheRestOfTheKernel) {
  for (const char* call : {"mount", "umount2", "setns", "unshare", "bpf", "keyctl", "add_key",
                           "request_key", "init_module", "kexec_load", "reboot", "swapon",
                           "pivot_root", "perf_event_open", "userfaultfd", "open_by_handle_at"}) {
    EXPECT_EQ(of(call), kEperm) << call;
  }
  for (const char* call : {"clone3", "io_uring_setup", "finit_module", "acct", "move_pages"}) {
    EXPECT_EQ(of(call), kEnosys) << call;
  }
}

INSTANTIATE_TEST_SUITE_P(Abis, ContainerFilter,
                         ::testing::Values(CallAbi::x86_64, CallAbi::x32, CallAbi::i386,
                                           CallAbi::aarch64, CallAbi::arm));

TEST(CallFilter, OtherArchitecturesGetTheAnswerOfWhatIsNotNamed) {
  CallFilter filter{kEnosys};
  filter.add_one(SECCOMP_RET_ALLOW, "read");
  const std::array abis{CallAbi::x86_64};
  seccomp_data call{};
  call.arch = AUDIT_ARCH_X86_64;
  EXPECT_EQ(kernel_answer(filter.program(abis), call), SECCOMP_RET_ALLOW);  // read is 0
  call.arch = AUDIT_ARCH_I386;
  EXPECT_EQ(kernel_answer(filter.program(abis), call), kEnosys);
}

TEST(CallFilter, TheFirstRuleCounts) {
  CallFilter filter{kEnosys};
  filter.add_when(kEperm, {.name = "socket", .value = AF_INET});
  filter.add_when(SECCOMP_RET_ALLOW, {.name = "socket", .value = 0, .mask = 0});
  filter.add_one(SECCOMP_RET_ALLOW, "read");
  filter.add_one(kEperm, "read");
  filter.add_when(kEperm, {.name = "read", .value = 0, .mask = 0});
  const std::array abis{CallAbi::x86_64};
  seccomp_data call{};
  call.arch = AUDIT_ARCH_X86_64;
  EXPECT_EQ(kernel_answer(filter.program(abis), call), SECCOMP_RET_ALLOW);
  call.nr = static_cast<int>(*call_number(CallAbi::x86_64, "socket"));
  EXPECT_EQ(kernel_answer(filter.program(abis), call), SECCOMP_RET_ALLOW);
  call.args[0] = AF_INET;
  EXPECT_EQ(kernel_answer(filter.program(abis), call), kEperm);
}

/// libseccomp's own names for them stand for two calls at once.
TEST(CallNumber, SocketsOfI386HaveTheirOwn) {
  for (const std::string_view name : allowed_calls()) {
    const auto number = call_number(CallAbi::i386, name);
    EXPECT_LT(number.value_or(0), 1000U) << name;
  }
  EXPECT_EQ(call_number(CallAbi::i386, "socket"), 359U);
  EXPECT_EQ(call_number(CallAbi::i386, "socketcall"), 102U);
  EXPECT_EQ(call_number(CallAbi::i386, "accept"), std::nullopt);
  EXPECT_EQ(call_number(CallAbi::x86_64, "mmap2"), std::nullopt);
  EXPECT_EQ(call_number(CallAbi::x32, "mseal"), 0x40000000U | 462U);
}

}  // namespace
}  // namespace mlenv
