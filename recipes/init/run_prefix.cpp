#include "recipes/init/run_prefix.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Of sudo, those with a value.
constexpr std::string_view kValuedLetters = "ughpCcrtTUDR";
constexpr std::array<std::string_view, 12> kValuedNames = {
    "--user", "--group", "--host",  "--prompt", "--close-from", "--login-class",
    "--role", "--type",  "--chdir", "--chroot", "--other-user", "--command-timeout"};

bool is_assignment(std::string_view word) {
  const std::size_t equal = word.find('=');
  return equal != std::string_view::npos && is_env_name(word.substr(0, equal));
}

/// One option of sudo's, at the beginning of `words`.
struct Option {
  std::size_t words = 1;
  std::string user{};  ///< that `-u` names
};

Option option_of(std::span<const std::string> words) {
  const std::string_view word = words.front();
  const std::string next = words.size() > 1 ? words[1] : std::string{};
  if (word.starts_with("--")) {
    const std::size_t equal = word.find('=');
    const std::string_view name = word.substr(0, equal);
    const bool valued =
        std::find(kValuedNames.begin(), kValuedNames.end(), name) != kValuedNames.end();
    if (equal != std::string_view::npos) {
      return {1, name == "--user" ? std::string(word.substr(equal + 1)) : std::string{}};
    }
    return {valued ? 2U : 1U, name == "--user" ? next : std::string{}};
  }
  // -u NAME, -uNAME, -Hu NAME
  const std::size_t at = word.find_first_of(kValuedLetters, 1);
  if (at == std::string_view::npos) return {};
  const bool joined = at + 1 < word.size();
  const bool user = word[at] == 'u';
  return {joined ? 1U : 2U, user ? (joined ? std::string(word.substr(at + 1)) : next) : ""};
}

/// Behind `sudo`: how many words are its options, and whom they name.
Option options_of(std::span<const std::string> words) {
  Option all{0, {}};
  while (all.words < words.size() && words[all.words].starts_with('-')) {
    if (words[all.words] == "--") return {all.words + 1, all.user};
    const Option one = option_of(words.subspan(all.words));
    all.words = std::min(all.words + one.words, words.size());
    if (!one.user.empty()) all.user = one.user;
  }
  return all;
}

}  // namespace

std::size_t prefix_length(std::span<const std::string> words) {
  std::size_t at = 0;
  while (at < words.size()) {
    const std::string& word = words[at];
    if (word == "sudo") {
      ++at;
      at += options_of(words.subspan(at)).words;
    } else if (word == "env") {
      ++at;
      while (at < words.size() && words[at].starts_with('-')) {
        at += words[at] == "-u" || words[at] == "-C" ? 2U : 1U;
      }
    } else if (word == "exec" || is_assignment(word)) {
      ++at;
    } else {
      break;
    }
  }
  return std::min(at, words.size());
}

std::string sudo_user(std::span<const std::string> words) {
  const auto sudo = std::find_if_not(words.begin(), words.end(), is_assignment);
  if (sudo == words.end() || *sudo != "sudo") return {};
  const std::size_t behind = static_cast<std::size_t>(sudo - words.begin()) + 1;
  const std::string user = options_of(words.subspan(behind)).user;
  return user == "root" || user == "#0" ? std::string{} : user;
}

std::string without_sudo(std::string_view text) {
  if (!text.starts_with("sudo ") && !text.starts_with("sudo\t")) return std::string(text);
  std::vector<std::string> words;
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.emplace_back(text.substr(at, end - at));
    starts.push_back(at);
    at = end;
  }
  const std::size_t first = 1 + options_of(std::span(words).subspan(1)).words;
  return first < starts.size() ? std::string(trim(text.substr(starts[first]))) : std::string(text);
}

}  // namespace mlenv
