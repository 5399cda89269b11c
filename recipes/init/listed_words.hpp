#pragma once
// Install commands whose words stand in a file: `xargs apt-get install < packages.txt`,
// `cat apt.txt | xargs apt-get install`, `pip install $(cat list.txt)`.
#include <vector>

#include "recipes/init/converters.hpp"
#include "recipes/init/shell_words.hpp"

namespace mlenv {

/// The same commands, those with the words of their files in place; as they were where no such file
/// is found. What only brought the file there (`cat`, `grep -v '#'`) is gone.
std::vector<ShellCommand> with_listed_words(std::vector<ShellCommand> commands,
                                            const FindFile& file);

/// The words of a list of packages, comments apart.
std::vector<std::string> words_of_list(std::string_view text);

}  // namespace mlenv
