#include "recipes/device_code.hpp"

#include <set>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/zip.hpp"
#include "images/inspect/fatbin.hpp"
#include "recipes/compat/architecture.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

std::string rendered(const std::vector<DeviceCode>& codes) {
  std::vector<std::string> names;
  names.reserve(codes.size());
  for (const DeviceCode& code : codes) names.push_back(code.name());
  return join(names, " ");
}

/// nullopt for text that `rendered` does not make.
std::optional<std::vector<DeviceCode>> parse_rendered(std::string_view text) {
  std::vector<DeviceCode> codes;
  if (text.empty()) return codes;
  for (const std::string_view word : split(text, ' ')) {
    const auto code = parse_device_code(word);
    if (!code) return std::nullopt;
    codes.push_back(*code);
  }
  return codes;
}

/// Inflating a framework takes seconds, and its answer never changes.
std::vector<DeviceCode> remembered_code(const LockedWheel& wheel, const fs::path& path,
                                        const fs::path& cache, Progress& progress) {
  const fs::path memory = cache / "device-code" / wheel.digest.hex();
  if (const auto text = read_file_if_exists(memory); text && text->ends_with('\n')) {
    const auto codes = parse_rendered(std::string_view(*text).substr(0, text->size() - 1));
    if (codes) return *codes;
  }
  const Activity activity(progress, "reading device code of " + wheel.file, 0);
  std::vector<DeviceCode> codes =
      while_doing("reading `" + wheel.file + "`", [&] { return device_code_in(path); });
  make_folders(memory.parent_path());
  write_file(memory, rendered(codes) + '\n', false);
  return codes;
}

bool is_library(const ZipMember& member) {
  const std::size_t at = member.name.rfind(".so");
  if (at == std::string::npos || member.is_folder()) return false;
  return at + 3 == member.name.size() || member.name[at + 3] == '.';
}

}  // namespace

std::vector<DeviceCode> device_code_in(const fs::path& wheel) {
  const Fd fd = open_file(wheel);
  std::set<DeviceCode> all;
  for (const ZipMember& member : read_zip_directory(fd.get())) {
    if (!is_library(member)) continue;
    FatbinScanner scanner;
    SliceSource source{fd.get(), member.offset, member.compressed_bytes};
    while_doing("reading `" + member.name + "`", [&] {
      if (member.method == ZipMember::Method::stored) {
        copy(source, scanner);
      } else {
        inflate_stream(source, scanner, member.size_bytes);
      }
    });
    all.merge(scanner.found());
  }
  return {all.begin(), all.end()};
}

std::vector<std::string> missing_device_code(const Lock& lock, const WheelPath& path_of,
                                             const fs::path& cache, Progress& progress) {
  std::vector<std::string> gaps;
  for (const LockedWheel& wheel : lock.wheels) {
    if (wheel.file.ends_with("-any.whl") || wheel.name.starts_with("nvidia-")) continue;
    const std::optional<fs::path> path = path_of(wheel);
    if (!path) continue;
    const std::vector<DeviceCode> codes = remembered_code(wheel, *path, cache, progress);
    if (codes.empty()) continue;
    for (const std::string& text : lock.request.gpus) {
      const auto gpu = parse_device_code(text);
      if (!gpu || coverage(codes, *gpu) != Coverage::none) continue;
      gaps.push_back(fmt::format("{} {} holds code for {}, and none that runs on {}", wheel.name,
                                 wheel.version, rendered(codes), text));
    }
  }
  return gaps;
}

}  // namespace mlenv
