#pragma once
// Running git.
#include <string>
#include <vector>

#include "base/process.hpp"

namespace mlenv {

/// `own` (`NAME=value`) as git is to have it: without what names another repository or asks on a
/// screen, in English, never prompting; `batch_ssh`: nothing of the user's says how ssh is run.
std::vector<std::string> git_environment(const std::vector<std::string>& own, bool batch_ssh);

/// git with these arguments, to its end. Throws `no-git`, `timeout`.
Captured run_git(const std::vector<std::string>& arguments, std::chrono::milliseconds deadline);

/// The same with files for its input and output.
Exit run_git(const std::vector<std::string>& arguments, int input, int output,
             std::chrono::milliseconds deadline);

/// What git said as the causes of an error with code `git-failed`.
class Error;
Error git_error(const std::string& url, const Captured& said);

}  // namespace mlenv
