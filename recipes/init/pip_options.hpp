#pragma once
// Options of `pip install` and `uv pip install`, and what of the recipe they mean.
#include <string_view>

namespace mlenv {

enum class PipMeaning {
  requirements,
  editable,
  index,
  extra_index,
  constraints,
  prereleases,
  links,
  extra,  ///< of the project
  group,
  nothing,    ///< of how pip works, not of what it installs
  other_key,  ///< the recipe says it with the key in `why`
  no_key,     ///< told in one line
  of_a_file,  ///< counts in a requirements file alone
};

struct PipWord {
  std::string_view name;
  PipMeaning meaning;
  bool valued = false;
  std::string_view key{};
};

/// nullptr: an option that is not known.
const PipWord* pip_option(std::string_view name);

}  // namespace mlenv
