#include <cstddef>
#include <cstdint>

#include "tests/fuzz/one_deflate.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mlenv::fuzz::one_deflate(std::as_bytes(std::span(data, size)));
  return 0;
}
