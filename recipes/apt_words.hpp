#pragma once
// What a program that misses something tells people to install: "run `sudo apt-get install
// libfoo-dev`".
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// The Debian packages of the last `apt install …`, `apt-get install …` or `aptitude install …` in
/// a text of a program's, in their order, each once; empty: it has none. Options are left out,
/// names of Python's packages become those of Python 3, and packages of other makers' archives are
/// none. A sentence that goes on behind the names ends them.
std::vector<std::string> packages_of_apt_words(std::string_view text);

}  // namespace mlenv
