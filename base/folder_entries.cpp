#include "base/folder_entries.hpp"

#include <cerrno>
#include <string_view>

#include "base/error.hpp"

namespace mlenv {

const dirent* next_entry(DIR* folder, const fs::path& shown) {
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(folder);  // NOLINT(concurrency-mt-unsafe)
    if (entry == nullptr && errno != 0) throw os_error(errno, "cannot list `{}`", shown.string());
    if (entry == nullptr) return nullptr;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry;
  }
}

}  // namespace mlenv
