#pragma once
// Python requirements as people write them (PEP 508), read as far as mlenv needs: uv decides the
// rest.
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mlenv {

struct Requirement {
  std::string name;  ///< as written
  std::vector<std::string> extras;
  std::string specifier;  ///< `>=2.9,<3`, blanks removed; empty: any version
  std::string marker;     ///< after `;`, as written
  /// Where it is in place of an index (package_address.hpp), as that writes it; empty: an index.
  std::string address{};

  std::string normalised_name() const;
  std::string str() const;
};

struct RequirementMistake {
  std::size_t offset = 0;  ///< into the text, bytes
  std::string message;
};

/// Also `name @ ADDRESS`, and addresses that tell the name themselves (a wheel's file, `#egg=`).
/// Other bare addresses, and options, are mistakes that say so.
std::variant<Requirement, RequirementMistake> parse_requirement(std::string_view text);

}  // namespace mlenv
