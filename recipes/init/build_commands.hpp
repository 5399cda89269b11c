#pragma once
// Commands of a build, as a RUN of a Dockerfile has them: what installs packages becomes `packages`
// and `system`, and the rest a step of `run`, where it is made of ordinary commands. Of a script
// what is not known before it runs (a condition, a pipe) is told, and the rest taken.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/converters.hpp"
#include "recipes/init/dockerfile.hpp"
#include "recipes/init/made_lists.hpp"
#include "recipes/init/shell_values.hpp"
#include "recipes/init/shell_words.hpp"

namespace mlenv {

/// What the commands of one build leave for those after them.
struct CommandsMemory {
  std::vector<Clone> clones{};
  std::vector<std::string> homes{};   ///< folders of users that are not made
  bool builds_wheel = false;          ///< a wheel of the project is made in it
  std::vector<std::string> wheels{};  ///< addresses that were downloaded
  MadeLists lists{};
  std::vector<std::string> copied{};  ///< environments and wheels of other stages, by their folders
  std::set<std::string> nodes{};      ///< releases of Node.js that were told
  std::string_view text{};            ///< of the file that all of them stand in
};

struct BuildCommands {
  SourcePlace place;
  std::string text;
  DockerVariables known;      ///< values of variables
  DockerVariables arguments;  ///< of them those that steps do not have by themselves
  std::string folder;         ///< where they start; empty: where steps start
  std::vector<std::string> secrets;
  std::string obstacle;              ///< why they can be no step; empty: they can
  CommandsMemory* memory = nullptr;  ///< of the whole build; null: of these commands alone
  bool bash = false;                 ///< `SHELL` says that bash reads them
  std::set<std::string> unset{};     ///< arguments that have no value unless a build gives one
  std::set<std::string> lost{};      ///< variables of the source whose value is not known
  FindPaths paths{};
  bool all_here = false;  ///< a file that lies not here is nowhere: `[ -f packages.txt ]` is false
  bool script = false;    ///< they are of a script that a command names
};

void convert_commands(const BuildCommands& commands, const FindFile& file, Conversion& to);

/// A variable that a step's text counts on and that has no value; empty: none.
std::string variable_without_value(const BuildCommands& commands, std::string_view text);
/// Why such a step cannot be taken over.
std::string why_without_value(std::string_view variable);

/// A word as a shell reads it back.
std::string shell_quoted(std::string_view word);

}  // namespace mlenv
