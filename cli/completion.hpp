#pragma once
// Scripts that complete mlenv's command line in a shell. Each is a function of the command tree
// alone, made of its own words and fixed ones; only names of images are asked for when a key is
// pressed (`mlenv images --names`, whose failures stay silent).
#include <string>
#include <string_view>

#include "cli/command_tree.hpp"

namespace mlenv::cli {

/// bash 4.4 or later, without the package bash-completion too.
std::string bash_completion(const ShownCommand& tree);
std::string zsh_completion(const ShownCommand& tree);
/// fish 3.1 or later.
std::string fish_completion(const ShownCommand& tree);

/// In single quotes, as all three shells read them: `what the other'\''s`.
std::string single_quoted(std::string_view text);

}  // namespace mlenv::cli
