#pragma once
// Which distribution has a module that a build or an import misses. A name that is not in the table
// is never guessed: an index may have somebody else's project under it.
#include <string_view>

namespace mlenv {

/// By the module's first part, `sklearn` → `scikit-learn`, `numpy` → `numpy`; empty: not known.
std::string_view distribution_of_module(std::string_view module);

/// The first Python without a module of its library that older ones had: `imp` → `3.12`; empty: it
/// is none.
std::string_view dropped_from_python(std::string_view module);

}  // namespace mlenv
