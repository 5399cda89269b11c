#pragma once
#include <cstdlib>
#include <string_view>

namespace mlenv {

/// How often, or of how much: `usual` in every run, `many` with --long (tests/run.sh).
template <class T>
T rounds(T usual, T many) {
  // Nobody sets it meanwhile.
  const char* asked = std::getenv("MLENV_TEST_LONG");  // NOLINT(concurrency-mt-unsafe)
  return asked != nullptr && std::string_view(asked) == "1" ? many : usual;
}

}  // namespace mlenv
