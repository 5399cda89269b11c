#pragma once
// What stands before a command and only changes how it is run: `NAME=value`, env, exec, sudo, and
// `uv run` and its kin, which start it in an environment that is the image's own here.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mlenv {

/// How many words those are, with sudo's and env's options (sudo(8), env(1)).
std::size_t prefix_length(std::span<const std::string> words);

/// The user that sudo runs it as, wherever among those it stands; empty: root, or no sudo.
std::string sudo_user(std::span<const std::string> words);

/// How many words `uv run --frozen`, `poetry run`, `conda run -n x` are at the beginning; 0: none.
std::size_t runner_length(std::span<const std::string> words);

/// A command's text without sudo, `uv run` and their options among those: `env A=1 make` of `env
/// A=1 sudo make`.
std::string without_sudo(std::string_view text);

}  // namespace mlenv
