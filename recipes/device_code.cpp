#include "recipes/device_code.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/zip.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::byte, 4> kMagic = {std::byte{0x50}, std::byte{0xED}, std::byte{0x55},
                                             std::byte{0xBA}};
constexpr std::size_t kContainerHeader = 16;  // magic, version, header size, size
constexpr std::size_t kEntryHeader = 64;
constexpr std::uint64_t kPtx = 1;
constexpr std::uint64_t kMachineCode = 2;
// Flags of an entry.
constexpr std::uint64_t kArchitectureSpecific = 0x100000;

/// Little-endian, at an offset of a header that is there.
std::uint64_t field(ByteView header, std::size_t offset, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) {
    value = value << 8U | std::to_integer<std::uint64_t>(header[offset + i]);
  }
  return value;
}

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

std::size_t FatbinScanner::search(ByteView rest) {
  const auto* found =
      std::search(rest.data(), rest.data() + rest.size(), kMagic.begin(), kMagic.end());
  const auto at = static_cast<std::size_t>(found - rest.data());
  if (at == rest.size()) return rest.size() < kMagic.size() ? 0 : at - (kMagic.size() - 1);
  if (at > 0) return at;
  if (rest.size() < kContainerHeader) return 0;
  const bool is_header = field(rest, 4, 2) == 1 && field(rest, 6, 2) == kContainerHeader;
  if (!is_header) return kMagic.size();
  left_ = field(rest, 8, 8);
  return kContainerHeader;
}

std::size_t FatbinScanner::entry(ByteView rest) {
  if (left_ < kEntryHeader) {
    left_ = 0;  // padding; the next container is searched for
    return search(rest);
  }
  if (rest.size() < kEntryHeader) return 0;
  const std::uint64_t kind = field(rest, 0, 2);
  const std::uint64_t header = field(rest, 4, 4);
  const std::uint64_t size = field(rest, 8, 8);
  const std::uint64_t architecture = field(rest, 28, 4);
  const std::uint64_t flags = field(rest, 40, 8);
  constexpr std::uint64_t kLargestHeader = 4096;
  if (header < kEntryHeader || header > kLargestHeader || left_ < header || left_ - header < size) {
    left_ = 0;
    return 1;
  }
  if ((kind == kPtx || kind == kMachineCode) && architecture >= 10 && architecture < 1000) {
    DeviceCode code;
    code.ptx = kind == kPtx;
    code.major = static_cast<int>(architecture / 10);
    code.minor = static_cast<int>(architecture % 10);
    if ((flags & kArchitectureSpecific) != 0) code.variant = 'a';
    found_.insert(code);
  }
  left_ -= header + size;
  skip_ = header + size - kEntryHeader;
  return kEntryHeader;
}

std::size_t FatbinScanner::step(ByteView rest) {
  if (skip_ > 0) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, rest.size()));
    skip_ -= count;
    return count;
  }
  return left_ > 0 ? entry(rest) : search(rest);
}

void FatbinScanner::write(ByteView data) {
  // What was left over is short: the rest of it is in `data`, or in the writes that follow.
  if (!pending_.empty()) {
    pending_.insert(pending_.end(), data.begin(), data.end());
    data = pending_;
  }
  ByteView rest = data;
  while (!rest.empty()) {
    const std::size_t used = step(rest);
    if (used == 0) break;
    rest = rest.subspan(used);
  }
  Bytes kept(rest.begin(), rest.end());
  pending_ = std::move(kept);
}

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
    all.insert(scanner.found().begin(), scanner.found().end());
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
