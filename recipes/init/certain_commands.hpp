#pragma once
// The commands of a build's script that are executed for certain: branches that known values
// decide, and loops over known items. What is not known stays whole.
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/converters.hpp"
#include "recipes/init/shell_values.hpp"
#include "recipes/init/shell_words.hpp"

namespace mlenv {

struct CertainScript {
  std::vector<ShellCommand> commands{};
  struct Decided {
    std::string condition;
    bool by_argument;  ///< which a build may be given another value of
  };
  std::vector<Decided> decided{};  ///< conditions that leave something out, or choose
};

struct ScriptValues {
  DockerVariables known{};
  std::set<std::string> empty{};  ///< arguments without a value
  FindPaths paths{};
  IsFile is_file{};
  /// Whether what it does has a key in the recipe: then a loop is taken apart.
  std::function<bool(const ShellCommand&)> installs{};
};

/// At most this many: one more than a conversion takes, so that it is refused and nothing is lost.
inline constexpr std::size_t kMostCertainCommands = 10'001;

CertainScript certain_commands(std::string_view text, const ScriptValues& values);

}  // namespace mlenv
