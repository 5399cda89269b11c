#include "runner/local/group_sweep.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <ctime>

#include "base/text.hpp"
#include "runner/local/limits.hpp"
#include "runner/local/own_groups.hpp"

namespace mlenv {
namespace {

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](unsigned char one) {
           return std::isxdigit(one) != 0;
         });
}

/// As random_container_name and LimitGroup call theirs.
bool is_our_group(std::string_view name) {
  constexpr std::string_view kRun = "mlenv-";
  constexpr std::string_view kLimits = "mlenv-limits-";
  constexpr std::size_t kRunDigits = 16;
  constexpr std::size_t kLimitsDigits = 8;
  if (name.starts_with(kLimits)) return is_hex(name.substr(kLimits.size()), kLimitsDigits);
  return name.starts_with(kRun) && is_hex(name.substr(kRun.size()), kRunDigits);
}

/// The kernel may have forgotten when a group was made, and says then that it was just now.
bool is_older_than(const fs::path& folder, std::chrono::seconds age) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  return std::time(nullptr) - info.st_mtim.tv_sec >= age.count();
}

/// Those of runs that are in there; `depth` of them may lie in one another: a run's in its limits'.
void sweep_below(const fs::path& folder, std::chrono::seconds age, int depth) {
  std::error_code error;
  for (fs::directory_iterator at{folder, error}, end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (!is_our_group(path.filename().string()) || !is_older_than(path, age)) continue;
    if (depth > 1) sweep_below(path, age, depth - 1);
    (void)remove_group(path);  // refused while a process or another group is in it
  }
}

}  // namespace

void sweep_groups(const std::vector<fs::path>& folders, std::chrono::seconds age) noexcept {
  try {
    for (const fs::path& one : folders) sweep_below(one, age, 2);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next one sweeps again
  }
}

void sweep_own_groups() noexcept {
  if (::geteuid() != 0) return;
  try {
    sweep_groups(all_own_groups(host_sources("/", "/tmp")), kUnusedGroup);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next one sweeps again
  }
}

}  // namespace mlenv
