#pragma once
// Which of an image's shells a person gets.
#include <functional>
#include <string>

namespace mlenv {

/// The first one that is there of those that people like; else `/bin/sh`. `is_there` is asked for
/// full paths.
std::string best_shell(const std::function<bool(const std::string&)>& is_there);

/// The same as a command of the image's own `/bin/sh`, where nobody can look into the image.
std::string shell_choice();

}  // namespace mlenv
