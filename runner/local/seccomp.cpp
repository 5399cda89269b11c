#include "runner/local/seccomp.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/confinement.hpp"

namespace mlenv {
namespace {

using Json = nlohmann::json;

const char* compare_name(CallCondition::Compare compare) {
  switch (compare) {
    case CallCondition::Compare::less:
      return "SCMP_CMP_LT";
    case CallCondition::Compare::greater:
      return "SCMP_CMP_GT";
    case CallCondition::Compare::masked_equal:
      return "SCMP_CMP_MASKED_EQ";
    case CallCondition::Compare::equal:
      break;
  }
  return "SCMP_CMP_EQ";
}

Json argument_of(const CallCondition& condition) {
  Json argument{{"index", condition.argument},
                {"value", condition.value},
                {"op", compare_name(condition.compare)}};
  if (condition.compare == CallCondition::Compare::masked_equal) {
    argument["value"] = condition.mask;  // the mask comes first there
    argument["valueTwo"] = condition.value;
  }
  return argument;
}

Json allow(const std::vector<std::string_view>& names) {
  return {{"names", names}, {"action", "SCMP_ACT_ALLOW"}};
}

Json answer(const std::vector<std::string_view>& names, int error) {
  return {{"names", names}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", error}};
}

/// Whether the kernel runs x32 programs (64-bit registers, 32-bit addresses), which few do: a
/// filter for them is a third of the time that a runtime takes for it.
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
Json architectures(std::string_view architecture) {
  if (architecture == "arm64") return {"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"};
  Json all{"SCMP_ARCH_X86_64", "SCMP_ARCH_X86"};
  if (has_x32()) all.push_back("SCMP_ARCH_X32");
  return all;
}

}  // namespace

Json seccomp_profile(std::string_view architecture, bool pretend_owners) {
  Json rules = Json::array();
  rules.push_back(pretend_owners ? answer(ownership_calls(), 0) : allow(ownership_calls()));
  rules.push_back(allow(allowed_calls()));
  for (const CallCondition& condition : allowed_when()) {
    Json rule = allow({condition.name});
    rule["args"] = Json::array({argument_of(condition)});
    rules.push_back(std::move(rule));
  }
  for (const int family : refused_families()) {
    Json rule = answer({"socket"}, EAFNOSUPPORT);
    rule["args"] =
        Json::array({argument_of({.name = "socket", .value = static_cast<std::uint64_t>(family)})});
    rules.push_back(std::move(rule));
  }
  // Not left to the default alone, which older runtimes do not know: the C library takes EPERM for
  // the last word, and no thread would start.
  rules.push_back(answer({"clone3"}, ENOSYS));
  rules.push_back(answer(refused_calls(), EPERM));
  return {{"defaultAction", "SCMP_ACT_ERRNO"},
          {"defaultErrnoRet", ENOSYS},
          {"architectures", architectures(architecture)},
          {"syscalls", std::move(rules)}};
}

}  // namespace mlenv
