#include "recipes/resolve/base_python.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/paths.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// An environment there will be hidden by the recipe's own.
constexpr std::string_view kOurs = "/opt/venv/";
constexpr std::uint64_t kLargestProgram = std::uint64_t{512} << 20U;
constexpr std::uint64_t kLargestPythonText = std::uint64_t{1} << 20U;

/// Where distributions keep their libraries: Debian's, Fedora's, SUSE's; Arch's.
constexpr std::array<std::string_view, 5> kLibraryFolders = {
    "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64"};

/// `3.11` of `…/python3.11`; empty for other names.
std::string minor_of(std::string_view interpreter) {
  constexpr std::string_view kName = "python";
  std::string_view name = interpreter.substr(interpreter.rfind('/') + 1);
  if (!name.starts_with(kName)) return {};
  name.remove_prefix(kName.size());
  const bool fine = name.starts_with("3.") && all_digits(name.substr(2));
  return fine ? std::string(name) : std::string{};
}

std::string python_version(const StackedTrees& files, const std::string& interpreter) {
  const std::string minor = minor_of(interpreter);
  if (minor.empty()) return {};
  const std::string library = fmt::format("libpython{}.so.1.0", minor);
  std::vector<std::string> places = {
      interpreter, std::string{folder_of(folder_of(interpreter))} + "/lib/" + library};
  for (const std::string_view folder : kLibraryFolders) {
    places.push_back(fmt::format("{}/{}", folder, library));
  }
  for (const std::string& place : places) {
    const auto bytes = files.read(place, kLargestProgram);
    if (!bytes) continue;
    if (std::string version = version_text_in(*bytes, minor); !version.empty()) return version;
  }
  return {};
}

/// What of `text` from `at` on could be a version's rest: `9`, `0rc1`, `2+`.
std::string_view patch_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == at) return {};
  while (end < text.size() && end < at + 12 &&
         (is_digit(text[end]) || is_letter(text[end]) || text[end] == '+')) {
    ++end;
  }
  return text.substr(at, end - at);
}

}  // namespace

std::string version_text_in(std::string_view bytes, std::string_view minor) {
  const std::string start = '\0' + std::string(minor) + '.';
  for (std::size_t at = bytes.find(start); at != std::string_view::npos;
       at = bytes.find(start, at + 1)) {
    const std::string_view patch = patch_at(bytes, at + start.size());
    const std::size_t end = at + start.size() + patch.size();
    if (patch.empty() || end >= bytes.size() || bytes[end] != '\0') continue;
    return std::string(bytes.substr(at + 1, end - at - 1));
  }
  return {};
}

std::string glibc_banner_in(std::string_view bytes) {
  constexpr std::string_view kRelease = " release version ";
  std::size_t at = bytes.find("GNU C Library");
  if (at == std::string_view::npos) return {};
  at = bytes.find(kRelease, at);
  if (at == std::string_view::npos) return {};
  std::string_view version = bytes.substr(at + kRelease.size(), 16);
  std::size_t end = 0;
  for (int dots = 0; end < version.size(); ++end) {
    if (version[end] == '.' && ++dots == 2) break;
    if (version[end] != '.' && !is_digit(version[end])) break;
  }
  version = version.substr(0, end);
  return version.starts_with("2.") && all_digits(version.substr(2)) ? std::string(version)
                                                                    : std::string{};
}

std::optional<BasePython> base_python(const StackedTrees& files, std::string_view path,
                                      const std::string& name) {
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::string place = fmt::format("{}/{}", path.substr(0, colon), name);
    path = colon == std::string_view::npos ? std::string_view{} : path.substr(colon + 1);
    if (!place.starts_with('/') || !files.is_program(place)) continue;
    BasePython python;
    python.interpreter = '/' + files.resolve(place).value_or("");
    if (python.interpreter.starts_with(kOurs)) continue;
    python.version = python_version(files, python.interpreter);
    return python;
  }
  return std::nullopt;
}

std::string base_glibc(const StackedTrees& files) {
  for (const std::string_view folder : kLibraryFolders) {
    const auto bytes = files.read(fmt::format("{}/libc.so.6", folder), kLargestProgram);
    if (!bytes) continue;
    if (std::string version = glibc_banner_in(*bytes); !version.empty()) return version;
  }
  // Before /lib and /usr/lib were one.
  for (const std::string_view folder : {"lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}) {
    const auto bytes = files.read(fmt::format("{}/libc.so.6", folder), kLargestProgram);
    if (bytes) return glibc_banner_in(*bytes);
  }
  return {};
}

bool has_musl(const StackedTrees& files) {
  for (const std::string& name : files.list("lib")) {
    if (name.starts_with("ld-musl-")) return true;
  }
  return false;
}

std::string os_release_value(const StackedTrees& files, std::string_view name) {
  auto text = files.read("etc/os-release", kLargestPythonText);
  if (!text) text = files.read("usr/lib/os-release", kLargestPythonText);
  if (!text) return {};
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    line = trim(line);
    if (!line.starts_with(name) || line.substr(name.size(), 1) != "=") continue;
    line.remove_prefix(name.size() + 1);
    const bool quoted = line.size() >= 2 && (line.front() == '"' || line.front() == '\'') &&
                        line.back() == line.front();
    return std::string(quoted ? line.substr(1, line.size() - 2) : line);
  }
  return {};
}

}  // namespace mlenv
