#include "base/digest_scan.hpp"

#include <algorithm>

namespace mlenv {

std::vector<Digest> digests_in(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::size_t kDigits = 64;
  std::vector<Digest> found;
  for (std::size_t at = 0; (at = text.find_first_of(kHex, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_not_of(kHex, at), text.size());
    if (end - at == kDigits) found.push_back(Digest::from_hex(text.substr(at, kDigits)));
    at = end;
  }
  return found;
}

void add_digests_in_file(const fs::path& file, std::vector<Digest>& found) {
  const auto text = read_file_if_exists(file);
  for (Digest& one : digests_in(text.value_or(""))) found.push_back(std::move(one));
}

}  // namespace mlenv
