#pragma once
// requirements.txt as lines, the way pip reads them: comments, lines that go on, options.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/mistakes.hpp"

namespace mlenv {

/// One thing that a file says.
struct RequirementLine {
  enum class What {
    requirement,
    nameless,  ///< a folder or source archive, which must tell whose it is
    include,
    constraints,
    all_hashed,
    index,     ///< where packages are looked for
    steering,  ///< how they are chosen or built
  };
  What what = What::requirement;
  std::string text;      ///< PEP 508 as `Requirement::str` writes it; of the others the path or
                         ///< URL as written, of `nameless` as PackageAddress has it
  std::string extras{};  ///< of `nameless`: `[dev]`
  std::string marker{};  ///< of `nameless`
  std::set<std::string> sha256;  ///< hex
  int line = 0;                  ///< 1-based
  int column = 0;                ///< in characters
  std::string option{};          ///< of `index` and `steering`: `--find-links`
  std::string package{};         ///< of `steering`: that alone, normalised
};

using LineKind = RequirementLine::What;

/// What is wrong, or cannot be honoured in a lock, goes to `mistakes`; the rest is in the answer.
std::vector<RequirementLine> parse_requirement_lines(std::string_view text, Mistakes& mistakes);

}  // namespace mlenv
