#include "runner/local/seccomp.hpp"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/call_filter.hpp"
#include "base/confinement.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

json argument_of(const CallCondition& condition) {
  return {{"index", condition.argument},
          {"value", condition.mask},  // the mask comes first there
          {"valueTwo", condition.value},
          {"op", "SCMP_CMP_MASKED_EQ"}};
}

json allow(const std::vector<std::string_view>& names) {
  return {{"names", names}, {"action", "SCMP_ACT_ALLOW"}};
}

json errno_rule(const std::vector<std::string_view>& names, int error) {
  return {{"names", names}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", error}};
}

/// Whether the kernel runs x32 programs (64-bit registers, 32-bit addresses), which few do: a
/// filter for them is a third of the time that an engine takes for it.
bool has_x32() {
#if defined(__x86_64__)
  if (::prctl(PR_GET_SECCOMP) != 0) return true;  // asking might be the end of us
  constexpr long kX32 = 0x40000000;               // __X32_SYSCALL_BIT
  return ::syscall(kX32 | SYS_getpid) > 0;
#else
  return true;
#endif
}

/// With the 32-bit programs of the architecture, as Docker has it.
json architectures(std::string_view architecture) {
  if (architecture == "arm64") return {"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"};
  json all{"SCMP_ARCH_X86_64", "SCMP_ARCH_X86"};
  if (has_x32()) all.push_back("SCMP_ARCH_X32");
  return all;
}

}  // namespace

json seccomp_profile(std::string_view architecture, bool pretend_owners) {
  json rules = json::array();
  rules.push_back(pretend_owners ? errno_rule(ownership_calls(), 0) : allow(ownership_calls()));
  rules.push_back(allow(allowed_calls()));
  for (const CallCondition& condition : allowed_when()) {
    json rule = allow({condition.name});
    rule["args"] = json::array({argument_of(condition)});
    rules.push_back(std::move(rule));
  }
  for (const int family : refused_families()) {
    json rule = errno_rule({"socket"}, EAFNOSUPPORT);
    rule["args"] =
        json::array({argument_of({.name = "socket", .value = static_cast<std::uint32_t>(family)})});
    rules.push_back(std::move(rule));
  }
  // Not left to the default alone, which older runtimes do not know: the C library takes EPERM for
  // the last word, and no thread would start.
  rules.push_back(errno_rule({"clone3"}, ENOSYS));
  rules.push_back(errno_rule(refused_calls(), EPERM));
  return {{"defaultAction", "SCMP_ACT_ERRNO"},
          {"defaultErrnoRet", ENOSYS},
          {"architectures", architectures(architecture)},
          {"syscalls", std::move(rules)}};
}

std::string container_filter(std::string_view architecture, bool pretend_owners) {
  const auto answering = [](int error) {
    return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
  };
  CallFilter filter{answering(ENOSYS)};
  filter.add(pretend_owners ? answering(0) : SECCOMP_RET_ALLOW, ownership_calls());
  filter.add(SECCOMP_RET_ALLOW, allowed_calls());
  for (const CallCondition& condition : allowed_when()) {
    filter.add_when(SECCOMP_RET_ALLOW, condition);
  }
  for (const int family : refused_families()) {
    filter.add_when(answering(EAFNOSUPPORT),
                    {.name = "socket", .value = static_cast<std::uint32_t>(family)});
  }
  filter.add(answering(EPERM), refused_calls());
  return filter.program(abis_of(architecture));
}

}  // namespace mlenv
