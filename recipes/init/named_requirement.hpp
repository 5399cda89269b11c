#pragma once
// Requirements as people have them in files, which pip finds the names of by fetching and running:
// folders, repositories, build folders of another machine.
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

struct NamedRequirement {
  std::string text;    ///< as `packages` takes it, where a name could be found; else as written
  std::string note{};  ///< what a person is to look at; empty: nothing
  bool dropped_path = false;  ///< conda's own build folder stood behind the name
};

/// `./libs/x` as `x @ ./libs/x`, where the folder or archive says whose it is; `git+https://host/x`
/// as `x @ git+…`, by its `#egg=` or, with a note, by the repository's name; `git+git@host:x` as a
/// URL. `folder` is the recipe's. Nothing is run or fetched.
NamedRequirement named_requirement(const fs::path& folder, std::string_view text);

/// `file:///croot/…`: where conda built a package that `pip freeze` lists.
bool is_conda_build_path(std::string_view address);

}  // namespace mlenv
