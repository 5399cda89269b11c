#include "runner/mpi/shell_words.hpp"

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::mpi {
namespace {

/// ssh(1): those that take a word, which may stand in the same one.
constexpr std::string_view kWithWord = "BbcDEeFIiJLlmOoPpQRSWw";

}  // namespace

ShellWords parse_shell_words(const std::vector<std::string>& words) {
  ShellWords parsed;
  std::size_t at = 0;
  // As ssh reads them, options may also follow the host.
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    const bool is_option = word.size() > 1 && word.front() == '-';
    if (!is_option && !parsed.host.empty()) break;
    if (!is_option) {
      parsed.host = word;
      continue;
    }
    if (word == "--") {
      ++at;
      if (!parsed.host.empty()) break;
      if (at < words.size()) parsed.host = words[at];
      continue;
    }
    for (std::size_t i = 1; i < word.size(); ++i) {
      if (word[i] == 'n') parsed.no_input = true;
      if (kWithWord.find(word[i]) == std::string_view::npos) continue;
      if (i + 1 == word.size()) ++at;
      break;
    }
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
