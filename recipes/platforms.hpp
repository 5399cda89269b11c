#pragma once
// The platforms that recipes, locks and builds can be for.
#include <span>
#include <string>
#include <string_view>

namespace mlenv {

/// As OCI writes them (image-spec config.md "architecture"), sorted: `linux/amd64`, `linux/arm64`.
std::span<const std::string_view> known_platforms();
bool is_known_platform(std::string_view text);

/// Of recipes that name none.
inline constexpr std::string_view kUsualPlatform = "linux/amd64";

/// `amd64`, `arm64`: Debian's words and OCI's alike.
std::string architecture_of(std::string_view platform);

/// The platform that somebody has in mind who writes `arm64`, `linux/aarch64` or `x86_64`; empty
/// where nobody can tell.
std::string_view meant_platform(std::string_view text);

}  // namespace mlenv
