#pragma once
// setup.py and setup.cfg, read without running anything (setuptools' documentation, "Keywords" and
// "Configuring setup() using setup.cfg files").
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlenv {

/// What a setup file says in plain words. What its code computes is nullopt, as is what it does not
/// say.
struct SetupFacts {
  struct Texts {
    std::vector<std::string> items;
    int line = 0;  ///< 1-based, where the list begins
  };
  bool calls_setup = false;  ///< of setup.py: `setup(…)` is in it
  std::optional<std::string> name;
  std::optional<std::string> python;  ///< `python_requires`
  std::optional<Texts> requires_;     ///< `install_requires`, as far as it is plain
  /// Where `install_requires` is there and computed: the files that its expression names, as
  /// `requirements.txt` of `open("requirements.txt")`.
  std::vector<std::string> files;
  /// Files that the code lists: a folder, and a name with `*`.
  struct Listed {
    std::string pattern;  ///< `requirements/*.txt`
    std::string only;     ///< `base`: the file of that name, whatever its ending; empty: all
    int line = 0;
  };
  std::vector<Listed> listed;         ///< that `install_requires` is read from
  std::vector<Listed> listed_extras;  ///< whose names are those of extras
  bool computed = false;  ///< `install_requires` is there, and not all of it is a plain list
  /// What statements under a condition add to it: texts, and where.
  std::vector<std::pair<std::string, int>> conditional;
  int line = 0;                          ///< of `install_requires`
  std::map<std::string, int> extras;     ///< of `extras_require`: names, and where
  std::vector<std::string> ext_modules;  ///< not empty: what it compiles, as its text
};

/// Texts, lists of them, `+`, and names that the file gives such values at its left margin or in
/// front of `setup`, and add to later, are understood.
SetupFacts read_setup_py(std::string_view text);
SetupFacts read_setup_cfg(std::string_view text);

}  // namespace mlenv
