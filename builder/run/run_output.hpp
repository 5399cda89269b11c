#pragma once
// What a step prints: shown without secrets, and read for the reason of a failure.
#include <map>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/process.hpp"

namespace mlenv {

/// Replaces secrets by `***`: each whole, and each of its lines from 6 characters on.
class Redaction {
 public:
  explicit Redaction(const std::map<std::string, std::string>& secrets);
  std::string operator()(std::string text) const;

 private:
  std::vector<std::string> hidden_;  // the longest first
};

struct FailedStep {
  std::string title;  ///< `run` step 2: `make`
  std::string place;  ///< in the recipe; may be empty
  Exit exit;
  std::string output;  ///< redacted
  bool network = false;
};
/// `step-failed`: how it ended, its last lines, and a hint where it missed the network.
Error step_error(const FailedStep& failed);

}  // namespace mlenv
