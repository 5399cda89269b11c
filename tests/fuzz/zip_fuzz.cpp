#include "tests/fuzz/entries.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)mlenv::fuzz::read_zip(std::as_bytes(std::span(data, size)));
  return 0;
}
