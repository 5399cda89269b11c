#pragma once
// Whether text is a version as PEP 440 has it (Appendix B, in any spelling that it normalises).
#include <string>
#include <string_view>

namespace mlenv {

bool is_version(std::string_view text);

/// What is wrong with a version behind a comparison operator (`==`, `~=`, …); empty: nothing. `.*`
/// goes with `==` and `!=` alone, `~=` wants two numbers, and `===` takes any text.
std::string version_mistake(std::string_view sign, std::string_view version);

}  // namespace mlenv
