#pragma once
// A filter of system calls as the kernel takes it (seccomp(2)), made from rules. Numbers are looked
// up in a binary tree of ranges, so that it is made, loaded and passed through quickly.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/confinement.hpp"

namespace mlenv {

/// Whose calls: the numbers of an architecture's programs.
enum class CallAbi : std::uint8_t { x86_64, x32, i386, aarch64, arm };

/// That of mlenv itself.
CallAbi own_abi();
/// Those whose programs a machine runs: its own, then the 32-bit ones. Names as images have them.
std::vector<CallAbi> abis_of(std::string_view architecture);
/// Nothing where there is no such call.
std::optional<std::uint32_t> call_number(CallAbi abi, std::string_view name);

/// Of a call's rules with a condition the first that holds counts, and none of them that is added
/// after one without; of those without the first counts. Actions are `SECCOMP_RET_…`.
class CallFilter {
 public:
  /// `otherwise`: of what no rule names, and of architectures that a program is not made for.
  explicit CallFilter(std::uint32_t otherwise) : otherwise_(otherwise) {}
  template <class Names>
  void add(std::uint32_t action, const Names& names) {
    for (const auto& name : names) add_one(action, name);
  }
  void add_one(std::uint32_t action, std::string_view name);
  void add_when(std::uint32_t action, const CallCondition& when);
  /// Bytes of sock_filter, at most BPF_MAXINSNS of them.
  std::string program(std::span<const CallAbi> abis) const;

  struct Answer {
    std::vector<std::pair<CallCondition, std::uint32_t>> when;
    std::optional<std::uint32_t> always;
  };

 private:
  std::uint32_t otherwise_;
  std::map<std::string, Answer, std::less<>> calls_;
};

}  // namespace mlenv
