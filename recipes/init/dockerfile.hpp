#pragma once
// A Dockerfile as a list of instructions (Docker's "Dockerfile reference"); nothing is run.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

struct DockerHeredoc {
  std::string name;
  std::string text;
  int line = 0;  ///< of its first line
};

struct DockerInstruction {
  std::string keyword;             ///< upper case
  std::vector<std::string> flags;  ///< `--from=build`
  std::string text;                ///< after the flags, continued lines joined
  std::vector<DockerHeredoc> heredocs;
  int line = 0;  ///< 1-based, of the keyword
};

/// Throws `source-invalid` (usage) that lists each line that begins with no instruction, and a
/// heredoc without its end, each with its place.
std::vector<DockerInstruction> read_dockerfile(std::string_view text, const fs::path& shown_path);

/// The items of `["a", "b"]`; nullopt when the text is no such list (then it is a shell's).
std::optional<std::vector<std::string>> exec_form(std::string_view text);

using DockerVariables = std::map<std::string, std::string>;

/// Where the variable ends that begins with the `$` at `at`.
std::size_t variable_end(std::string_view text, std::size_t at);
/// Words between blanks, quotes removed, variables replaced but for those in single quotes: as
/// instructions other than RUN, CMD and ENTRYPOINT read them.
std::vector<std::string> docker_words(std::string_view text, const DockerVariables& known,
                                      bool& complete);
/// The same of one value, whose blanks stay: `ENV NAME "a b" c`.
std::string docker_value(std::string_view text, const DockerVariables& known, bool& complete);
/// With `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME:+word}` replaced. `complete` becomes false
/// when a variable has no known value, which stays as it is written.
std::string expand_variables(std::string_view text, const DockerVariables& known, bool& complete);

}  // namespace mlenv
