#pragma once
// What a command of a build is, by its words: whether a step can hold it, and what it is for.
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/shell_words.hpp"

namespace mlenv {

/// The words from the program on, without what only changes how it is run.
std::vector<std::string> program_words(const ShellCommand& command);

/// Whether it needs the network; `words` are those from the program on.
bool fetches(const std::vector<std::string>& words);

/// Whether it brings packages, tools or archives, which the recipe has keys for.
bool installs_something(const ShellCommand& command);

/// Why the command is none of a step; empty: it is.
std::string_view step_obstacle(const ShellCommand& command);

/// Whether `$NAME` or `${NAME…` is in it.
bool names_variable(std::string_view text, const std::string& name);
/// Whether it counts on a value of that variable: `$NAME`, but not `${NAME:-x}`, nor where it gives
/// the variable one itself.
bool needs_variable(std::string_view text, const std::string& name);

/// Whether it changes nothing that lasts: `cd`, `echo`, `export`.
bool only_shows(const ShellCommand& one);

/// `mkdir -p` of a `mkdir`: a step comes after the recipe's `files` and `workdir`, and what they
/// made is no mistake.
std::string made_repeatable(std::string text, const std::vector<std::string>& words);

/// Whether it is about users of the image, which has root alone: `useradd`, `chown`.
bool is_of_users(const ShellCommand& one, const std::vector<std::string>& words);
/// The folder that `useradd -m NAME` makes; empty: none.
std::string home_made_by(const std::vector<std::string>& words);

/// Whether it adds an archive that the distribution has not.
bool adds_archive(const ShellCommand& one, const std::vector<std::string>& words);

/// Whether it is about a Python that the image does not have: links for one beside the
/// distribution's, and, where the base is made `of_packages`, conda's place.
bool is_of_another_python(const ShellCommand& one, bool of_packages);

/// `sed -i s/…/mirror/ /etc/apt/sources.list`: settings of apt's in the image.
bool changes_archives(const ShellCommand& one, const std::vector<std::string>& words);
/// `curl … | tar xz -C /opt`: a step may hold it. What a shell or apt reads may do anything.
bool is_ordinary_pipe(const std::vector<ShellCommand>& all);
/// Debian's packages of the programs that a step starts and minimal images lack.
std::vector<std::string> packages_of_step(std::string_view command);

}  // namespace mlenv
