#include "runner/mpi/shell_words.hpp"

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::mpi {
namespace {

/// ssh(1): those that take a word, which may stand in the same one.
constexpr std::string_view kWithWord = "BbcDEeFIiJLlmOoPpQRSWw";

/// Whether an option's own word follows it.
bool takes_next(const std::string& option, bool& no_input) {
  for (std::size_t i = 1; i < option.size(); ++i) {
    if (option[i] == 'n') no_input = true;
    if (kWithWord.find(option[i]) != std::string_view::npos) return i + 1 == option.size();
  }
  return false;
}

/// Where what follows options begins.
std::size_t after_options(const std::vector<std::string>& words, std::size_t at, bool& no_input) {
  for (; at < words.size() && words[at].size() > 1 && words[at].front() == '-'; ++at) {
    if (words[at] == "--") return at + 1;
    if (takes_next(words[at], no_input)) ++at;
  }
  return at;
}

}  // namespace

ShellWords parse_shell_words(const std::vector<std::string>& words) {
  ShellWords parsed;
  std::size_t at = after_options(words, 0, parsed.no_input);
  if (at < words.size()) {
    parsed.host = words[at];
    at = after_options(words, at + 1, parsed.no_input);  // as ssh reads them
  }
  if (at < words.size()) {
    parsed.command = join({words.begin() + static_cast<std::ptrdiff_t>(at), words.end()}, " ");
  }
  if (parsed.host.empty() || parsed.command.empty()) {
    throw usage_error("usage", "between the nodes of a job: `ssh HOST COMMAND…`")
        .because("there is no terminal on the other side");
  }
  return parsed;
}

}  // namespace mlenv::mpi
