#pragma once
// Whose requirement a text is, where no more of it is asked.
#include <string>
#include <string_view>

namespace mlenv {

/// The normalised name at the start of a requirement (PEP 508): `scikit-learn` of
/// `Scikit_learn[x] >= 1 ; …`. Nothing else of the text is looked at.
std::string name_of_requirement(std::string_view text);

}  // namespace mlenv
