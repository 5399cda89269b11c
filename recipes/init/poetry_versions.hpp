#pragma once
// Versions as Poetry writes them (its documentation, "Dependency specification").
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// `^1.2`, `~1.2`, `1.2.*`, `>=1,<2`, `>=1 <2`, as specifier sets of PEP 440, one for each of what
/// `||` stands between; one empty set for any version. Empty: not understood.
std::vector<std::string> poetry_alternatives(std::string_view text);

/// The same as one set, where nothing but single versions lies between the alternatives:
/// `>=3.8,<3.9.7 || >3.9.7` is `>=3.8,!=3.9.7`. nullopt: no set says it.
std::optional<std::string> poetry_specifier(std::string_view text);

/// `~3.10` as a marker, `python_version >= "3.10" and python_version < "3.11"`; empty: any Python,
/// or not understood.
std::string marker_of_poetry_python(std::string_view text);

}  // namespace mlenv
