#pragma once
// What must hold for any bytes given as an ignore file: it is read, or refused as the person's
// mistake; and no answer about a folder hides an exception for what is in it.
#include <array>
#include <stdexcept>
#include <string_view>

#include "base/error.hpp"
#include "recipes/ignore.hpp"

namespace mlenv::fuzz {

/// From a folder down to what lies in it.
using Way = std::array<std::string_view, 3>;

/// Throws std::logic_error when a promise is broken.
inline void go(const IgnoreRules& rules, const Way& way) {
  IgnoreRules::Fate fate;
  bool closed = false;
  for (const std::string_view path : way) {
    const IgnoreRules::Fate next = rules.judge(path, fate);
    if (closed && fate.ignored && !next.ignored) {
      throw std::logic_error("an exception for something in a folder that was passed over");
    }
    if (next.secret && !next.withheld) throw std::logic_error("a secret that is not withheld");
    // Into what is withheld only an exception that names it leads.
    closed = closed || (next.ignored && !next.withheld && !rules.may_return(path, next));
    fate = next;
  }
}

/// True when it was read. Throws std::logic_error when a promise is broken.
inline bool one_ignore(std::string_view text) {
  constexpr std::array<Way, 3> kWays = {{{"a", "a/b", "a/b/c.txt"},
                                         {"src", "src/.env", "src/.env/x"},
                                         {".git", ".git/a", ".git/a/b"}}};
  try {
    const IgnoreRules rules = IgnoreRules::parse(text, ".mlenvignore");
    for (const Way& way : kWays) go(rules, way);
    return true;
  } catch (const Error& error) {
    if (error.kind() != Kind::usage || error.code() != "ignore-invalid") throw;
    return false;
  }
}

}  // namespace mlenv::fuzz
