#include "recipes/vendored.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/small_file.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Somebody else's file of that name may be anything: a pipe, a link, a folder.
std::optional<std::string> text_of_mark(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20U;
  const Fd fd{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  FdSource source{fd.get()};
  return read_all(source, kMostBytes);
}

}  // namespace

std::set<std::string> vendored_names(const fs::path& folder) {
  const std::optional<std::string> text = text_of_mark(folder / kVendorMark);
  if (!text) return {};
  std::set<std::string> names = {std::string(kVendorMark)};
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.empty() && !line.starts_with('#')) names.emplace(line);
  }
  return names;
}

void mark_vendored(const fs::path& folder, const std::set<std::string>& names) {
  const std::set<std::string> known = vendored_names(folder);
  std::string text;
  if (known.empty()) {
    text = "# Written by `mlenv vendor`: its copies here, which are part of no source.\n";
  }
  for (const std::string& name : names) {
    if (!known.contains(name)) text += name + '\n';
  }
  if (text.empty()) return;
  // In one piece, so that lines of another process stay whole.
  const Fd mark = open_to_write(folder / kVendorMark, O_APPEND, 0644);
  write_all(mark.get(), as_bytes(text));
}

}  // namespace mlenv
