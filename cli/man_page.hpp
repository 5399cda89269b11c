#pragma once
// Manual pages: the command tree in man(7) macros, one page for mlenv and one for each command with
// all that is below it. A function of the tree, the version, and the table of environment
// variables.
#include <string>
#include <vector>

#include "cli/command_tree.hpp"

namespace mlenv::cli {

struct ManPage {
  std::string name;  ///< `mlenv`, `mlenv-build`; of section 1
  std::string text;  ///< ASCII
};
std::vector<ManPage> man_pages(const ShownCommand& tree);

}  // namespace mlenv::cli
