#pragma once
// What programs of an image are kept from, in a container and in the build sandbox alike: system
// calls, capabilities, and places of /proc and /sys. Docker's defaults, but for what
// docs/isolation.md gives reasons for.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// One argument of a system call: its lower 32 bits, which are all that the kernel takes of those
/// that are looked at here. A program sets the upper ones as it likes.
struct CallCondition {
  std::string_view name;
  unsigned argument = 0;
  std::uint32_t value = 0;
  std::uint32_t mask = ~std::uint32_t{0};  ///< the bits that are compared
};

/// Calls that are carried out, of every architecture: who builds a filter skips the names that its
/// own does not have. Neither `ownership_calls` nor those of `allowed_when` are among them.
std::vector<std::string_view> allowed_calls();
/// chown(2) and its kin, and setgroups(2).
std::vector<std::string_view> ownership_calls();
/// Calls that are carried out where one of their conditions holds.
std::span<const CallCondition> allowed_when();
/// Calls that answer EPERM. What is neither allowed nor refused answers ENOSYS, as a call that the
/// kernel lacks: libraries that know a newer call have another way then, and take EPERM for the
/// last word.
std::vector<std::string_view> refused_calls();
/// Socket families that answer EAFNOSUPPORT: no network namespace holds them.
std::span<const int> refused_families();

struct Capability {
  std::string_view name;  ///< with `CAP_`
  int number;             ///< linux/capability.h
};
/// In the order of the alphabet.
std::span<const Capability> default_capabilities();

/// Files and folders that are covered, as far as they are there: facts and settings of the machine.
std::vector<std::string> hidden_paths();
/// Folders and files that cannot be written.
std::span<const std::string_view> read_only_paths();

}  // namespace mlenv
