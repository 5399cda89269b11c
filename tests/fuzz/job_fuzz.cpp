#include <cstddef>
#include <cstdint>

#include "tests/fuzz/one_job.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mlenv::fuzz::one_job({reinterpret_cast<const char*>(data), size});
  return 0;
}
