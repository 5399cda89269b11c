#pragma once
// Which of a release's wheels an interpreter takes (PEP 425, PEP 600): the order is the one of
// `packaging.tags`, which pip and uv follow.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

class WheelTags {
 public:
  /// CPython of `python_minor` (`3.11`) on Linux with `glibc` (`2.36`); `architecture` is Debian's
  /// (`amd64`, `arm64`).
  WheelTags(std::string_view python_minor, std::string_view glibc, std::string_view architecture);

  /// Lower is better; nullopt: the wheel cannot be installed, or `file` is no wheel's name.
  std::optional<int> rank(std::string_view file) const;

  /// Index of the best one, by rank, then by build number; nullopt when none can be installed.
  std::optional<std::size_t> best(const std::vector<std::string>& files) const;

 private:
  void add(const std::string& python, const std::string& abi);
  std::vector<std::string> platforms_;
  std::map<std::string, int, std::less<>> ranks_;
};

/// `x86_64`, `aarch64`
std::string_view machine_name(std::string_view architecture);

}  // namespace mlenv
