#include "recipes/platforms.hpp"

#include <algorithm>
#include <array>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 2> kKnown = {"linux/amd64", "linux/arm64"};

/// What else the architectures are called: uname(2)'s names, GNU's, with OCI's usual variant.
struct PlatformAlias {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array<PlatformAlias, 10> kPlatformAliases = {{{"amd64", kKnown[0]},
                                                             {"x86_64", kKnown[0]},
                                                             {"x86-64", kKnown[0]},
                                                             {"x64", kKnown[0]},
                                                             {"amd64/v1", kKnown[0]},
                                                             {"arm64", kKnown[1]},
                                                             {"aarch64", kKnown[1]},
                                                             {"armv8", kKnown[1]},
                                                             {"arm64/v8", kKnown[1]},
                                                             {"arm64v8", kKnown[1]}}};

}  // namespace

std::span<const std::string_view> known_platforms() { return kKnown; }

bool is_known_platform(std::string_view text) {
  return std::find(kKnown.begin(), kKnown.end(), text) != kKnown.end();
}

std::string architecture_of(std::string_view platform) {
  const std::size_t slash = platform.find('/');
  return std::string(slash == std::string_view::npos ? platform : platform.substr(slash + 1));
}

std::string_view meant_platform(std::string_view text) {
  constexpr std::string_view kSystem = "linux/";
  const bool whole = text.starts_with(kSystem);
  const std::string_view name = whole ? text.substr(kSystem.size()) : text;
  for (const PlatformAlias& other : kPlatformAliases) {
    if (other.theirs == name) return other.ours;
  }
  return nearest(text, kKnown);
}

}  // namespace mlenv
