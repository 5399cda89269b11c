#pragma once
// Other people's programs as oracles.
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"

namespace mlenv::test {

/// Standard output of `argv`; throws when it fails.
inline std::string output_of(std::vector<std::string> argv, std::string_view input = {}) {
  Command command{Purpose{"test"}};
  command.argv = std::move(argv);
  const Captured captured = run_captured(command, std::chrono::seconds{60}, input);
  if (captured.exit.code != 0) throw std::runtime_error(captured.err);
  return captured.out;
}

inline std::string python(const std::string& script, std::string_view input = {}) {
  return output_of({"python3", "-c", script}, input);
}

}  // namespace mlenv::test
