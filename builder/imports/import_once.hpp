#pragma once
// One `import` in a sandbox and an interpreter of its own, judged from outside of both.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/overlay.hpp"
#include "base/process.hpp"

namespace mlenv {

/// What the program said, as far as it is kept, and how it ended.
struct ImportAnswer {
  std::string said;
  bool late = false;  ///< it did not end in time; `exit` says nothing then
  Exit exit;
};

struct ImportOutcome {
  std::string error;   ///< one harmless line; empty: it came in
  std::string module;  ///< that is nowhere; empty: another reason
};

/// An import has to say that it came in, after it did, and to end well: one that ends the
/// interpreter itself, with whatever status, did not.
ImportOutcome judged_import(const ImportAnswer& answer, std::chrono::seconds limit);

/// `names` in turn, until one fails: `a.b`, or `a.b:c,d` for `from a.b import c, d`. `tree` is the
/// image's, with a writable folder that no other import has; `env` as it is. Nothing of it goes on
/// afterwards.
ImportOutcome import_once(const std::vector<std::string>& names, const Overlay& tree,
                          const std::vector<std::string>& env, std::chrono::seconds limit);

}  // namespace mlenv
