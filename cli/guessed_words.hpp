#pragma once
// What people type who know another program: where a word of docker, conda, uv, git or Slurm leads
// here.
#include <string_view>

namespace mlenv::cli {

/// One line for a command that mlenv does not have, such as `` `mlenv stop RUN` ends a run ``;
/// empty where nothing is known of it.
std::string_view meant_by_command(std::string_view word);

/// The same for an option, as typed (`-it`, `--privileged`), of `run` and its kin.
std::string_view meant_by_option(std::string_view word);

}  // namespace mlenv::cli
