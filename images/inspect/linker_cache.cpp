#include "images/inspect/linker_cache.hpp"

#include <algorithm>
#include <optional>

namespace mlenv {
namespace {

constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kHeader = 48;
constexpr std::size_t kEntry = 24;
constexpr std::size_t kOldHeader = 16;
constexpr std::size_t kOldEntry = 12;
constexpr unsigned kBigEndian = 3;  // of the header's flags, the last two bits
constexpr std::size_t kLongestCachedPath = 4096;
constexpr std::size_t kNamesBytes = std::size_t{16} << 20U;  // of names that may be one in the file

/// A cache within the file: offsets are from its own beginning.
class Cache {
 public:
  explicit Cache(std::string_view text) : text_(text) {
    constexpr std::size_t kFlags = 28;
    big_ = text_.size() > kFlags && (static_cast<unsigned char>(text_[kFlags]) & 3U) == kBigEndian;
  }
  std::uint64_t number(std::size_t at, std::size_t width) const {
    if (at > text_.size() || width > text_.size() - at) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t from = big_ ? i : width - 1 - i;
      value = value << 8U | static_cast<unsigned char>(text_[at + from]);
    }
    return value;
  }
  std::string name(std::uint64_t at) const {
    if (at >= text_.size()) return {};
    const std::string_view rest = text_.substr(at, kLongestCachedPath);
    const std::size_t end = rest.find('\0');
    return end == std::string_view::npos ? std::string{} : std::string(rest.substr(0, end));
  }
  std::size_t size() const { return text_.size(); }

 private:
  std::string_view text_;
  bool big_ = false;
};

/// Behind a cache of the older format, which tools of long ago read, stands one of the newer.
std::optional<std::string_view> newer_part(std::string_view text) {
  if (text.starts_with(kOldMagic)) {
    const std::uint64_t count = Cache{text}.number(12, 4);
    if (count > text.size()) return std::nullopt;
    constexpr std::size_t kAlign = 8;
    const std::size_t end = kOldHeader + kOldEntry * static_cast<std::size_t>(count);
    const std::size_t at = (end + kAlign - 1) / kAlign * kAlign;
    if (at > text.size()) return std::nullopt;
    text.remove_prefix(at);
  }
  if (!text.starts_with(kCacheMagic) || text.size() < kHeader) return std::nullopt;
  return text;
}

}  // namespace

std::vector<CachedLibrary> read_linker_cache(std::string_view text) {
  std::vector<CachedLibrary> found;
  const auto part = newer_part(text);
  if (!part) return found;
  const Cache cache{*part};
  const std::uint64_t count = std::min<std::uint64_t>(cache.number(kCacheMagic.size(), 4),
                                                      (cache.size() - kHeader) / kEntry);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count && bytes < kNamesBytes; ++i) {
    const std::size_t at = kHeader + i * kEntry;
    CachedLibrary one;
    one.flags = cache.number(at, 4);
    one.name = cache.name(cache.number(at + 4, 4));
    one.path = cache.name(cache.number(at + 8, 4));
    one.hwcaps = cache.number(at + 16, 8);
    bytes += one.name.size() + one.path.size();
    if (!one.name.empty() && !one.path.empty()) found.push_back(std::move(one));
  }
  return found;
}

}  // namespace mlenv
