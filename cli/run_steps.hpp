#pragma once
// What a build's `run` steps need of this machine and of the command line.
#include <map>
#include <string>
#include <vector>

#include "builder/run/run_step.hpp"
#include "cli/ui.hpp"
#include "recipes/lock.hpp"

namespace mlenv::cli {

/// `id=NAME,src=FILE` or `id=NAME,env=VARIABLE`, as `docker build --secret` has them; `id=NAME`
/// alone is the file of that name. Throws `bad-secret` (usage).
std::map<std::string, std::string> read_secrets(const std::vector<std::string>& words);

/// With places in `recipe`, and this machine's network settings to lend.
RunOptions run_options(const Recipe& recipe, std::map<std::string, std::string> secrets);

/// Of two records of one lock, files and layer format: whether they differ in `runs` layers on top
/// alone, whose steps may give something else each time.
bool differ_in_runs_alone(const Built& recorded, const Built& built, std::size_t runs);

}  // namespace mlenv::cli
