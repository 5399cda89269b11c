#pragma once
// Install commands whose words stand in a file: `xargs apt-get install < packages.txt`,
// `cat apt.txt | xargs apt-get install`, `pip install $(cat list.txt)`.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/converters.hpp"
#include "recipes/init/shell_words.hpp"

namespace mlenv {

/// What a pipe writes, and the name by which an install command reads it.
struct PipedList {
  std::string name;
  std::string text;
  bool of_file = false;  ///< its lines are those of a file here
};
struct PipedLists {
  std::function<std::optional<PipedList>(std::string_view commands)> of{};
  /// Is told commands whose files are taken as they are, for what they write is not known.
  std::function<void(std::string_view commands)> tell_unknown{};
};

/// The same commands, those with the words of their files in place; as they were where no such file
/// is found. What only brought the file there (`cat`, `grep -v '#'`) is gone.
std::vector<ShellCommand> with_listed_words(std::vector<ShellCommand> commands,
                                            const FindFile& file, const PipedLists& piped);

/// The words of a list of packages, comments apart.
std::vector<std::string> words_of_list(std::string_view text);

}  // namespace mlenv
