#pragma once
// Logins in addresses: what must not be on a screen or in a log.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// A part of a text, bytes.
struct TextSpan {
  std::size_t start = 0;
  std::size_t size = 0;
};

/// User and password of each URL in the text: `me:secret` of `https://me:secret@host/path`. The
/// user of ssh alone is no secret. A `/` that stands in a password unescaped is understood.
std::vector<TextSpan> find_logins(std::string_view text);

/// The first address in a text, from its scheme up to a blank, quote, comma or `)`; of size 0:
/// there is none.
TextSpan find_address(std::string_view text);

/// The text with its first address as `display_url` shows it.
std::string with_display_url(std::string text);

inline constexpr std::string_view kHiddenLogin = "***";

/// With `***` in place of each.
std::string without_logins(std::string_view text);

}  // namespace mlenv
