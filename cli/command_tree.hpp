#pragma once
// The command line as a tree of values, read off the parser: what the help shows, for the programs
// that write it in other forms (completion scripts, manual pages). Hidden commands are left out.
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
class Option;
}  // namespace CLI

namespace mlenv::cli {

/// What may stand for a word, as far as a shell can offer it.
enum class WordKind {
  text,       ///< anything
  choice,     ///< one of a few
  command,    ///< one of mlenv's commands
  file,       ///< a path
  recipe,     ///< path of a recipe
  image,      ///< name of an image in the store
  runnable,   ///< an image or a recipe
  run,        ///< a recorded run
  running,    ///< a run that goes on
  enterable,  ///< an image, a recipe, or a run that goes on
  output,     ///< `oci:DIR`, `oci-archive:FILE`, `docker-archive:FILE`
  job,        ///< words of another program, from here to the end
};

struct ShownOption {
  std::vector<std::string> names;    ///< `-o`, `--output`: short ones first
  std::string value;                 ///< what the help calls it; empty: takes none
  WordKind kind = WordKind::text;    ///< of the value
  std::vector<std::string> choices;  ///< of WordKind::choice
  bool repeats = false;              ///< each time it is given counts
  std::string meaning;
};

struct ShownArgument {
  std::string name;
  WordKind kind = WordKind::text;
  std::vector<std::string> choices;
  std::string by_default;  ///< empty: none
  bool required = false;
  bool repeats = false;  ///< the last one may
  std::string meaning;
};

struct ShownCommand {
  std::vector<std::string> path;  ///< `store`, `verify`; empty: mlenv itself
  std::string purpose;
  std::string example;               ///< a command line; empty: none
  std::vector<ShownOption> options;  ///< its own; those of the commands around it hold too
  std::vector<ShownArgument> arguments;
  std::vector<ShownCommand> commands;

  /// `store verify`; empty for mlenv itself.
  std::string name() const;
  /// What stands behind it: `verify`, `sync`, `path`.
  std::vector<std::string> names_of_commands() const;
};

/// Whether it tells the version, which only mlenv itself does: other commands do not have it.
bool tells_version(const ShownOption& option);

/// In the help's order.
ShownCommand command_tree(CLI::App& top);

/// Says what an option's or argument's word is; not shown in the help.
void take_word_of(CLI::Option* option, WordKind kind);

/// The trees of a tree: itself, then all below it.
std::vector<const ShownCommand*> all_commands(const ShownCommand& tree);

/// Options that hold for `command` of `tree`: its own, then those around it, each name once.
std::vector<ShownOption> options_of(const ShownCommand& tree, const ShownCommand& command);

}  // namespace mlenv::cli
