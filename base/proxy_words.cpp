#include "base/proxy_words.hpp"

#include <algorithm>
#include <string_view>

namespace mlenv {

std::string without_proxy(std::string text) {
  for (const std::string_view words :
       {"Unsupported proxy syntax in '", "Unsupported proxy scheme for '"}) {
    const std::size_t begin = text.find(words);
    if (begin == std::string::npos) continue;
    const std::size_t start = begin + words.size();
    const std::size_t line = std::min(text.find('\n', start), text.size());
    // The address may hold this character, too.
    const std::size_t end = text.rfind('\'', line - 1);
    text.replace(start, std::max(end, start) - start, "***");
  }
  return text;
}

}  // namespace mlenv
