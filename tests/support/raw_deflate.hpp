#pragma once
// zlib as the oracle of our DEFLATE code.
#include <string>
#include <string_view>

namespace mlenv::test {

/// `window_bits` as zlib takes them: -15 raw, 31 gzip.
std::string zlib_deflate(std::string_view text, int level, int window_bits = -15);
/// Throws std::runtime_error unless `data` is exactly one stream.
std::string zlib_inflate(std::string_view data, int window_bits = -15);

}  // namespace mlenv::test
