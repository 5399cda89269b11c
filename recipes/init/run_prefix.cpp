#include "recipes/init/run_prefix.hpp"

#include <algorithm>
#include <array>
#include <utility>
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
struct PrefixOption {
  std::size_t words = 1;
  std::string user{};  ///< that `-u` names
};

PrefixOption option_of(std::span<const std::string> words) {
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
PrefixOption options_of(std::span<const std::string> words) {
  PrefixOption all{0, {}};
  while (all.words < words.size() && words[all.words].starts_with('-')) {
    if (words[all.words] == "--") return {all.words + 1, all.user};
    const PrefixOption one = option_of(words.subspan(all.words));
    all.words = std::min(all.words + one.words, words.size());
    if (!one.user.empty()) all.user = one.user;
  }
  return all;
}

struct Prefix {
  std::size_t words = 0;
  std::vector<std::size_t> sudos;  ///< where `sudo` stands among them
  /// What a text loses: where it begins, and how many words that is.
  std::vector<std::pair<std::size_t, std::size_t>> gone{};
};

/// Programs that run others in an environment of theirs.
constexpr std::array<std::string_view, 8> kRunners = {"uv",    "poetry", "pdm",        "pipenv",
                                                      "conda", "mamba",  "micromamba", "hatch"};
/// Their options that have a value.
constexpr std::array<std::string_view, 18> kRunnerValues = {
    "-n",        "--name",      "-p",          "--prefix",  "--python",
    "--with",    "--extra",     "--group",     "--project", "--directory",
    "--package", "--env-file",  "--cwd",       "-e",        "--with-requirements",
    "--index",   "--index-url", "--only-group"};

Prefix prefix_of(std::span<const std::string> words) {
  Prefix prefix;
  std::size_t at = 0;
  while (at < words.size()) {
    const std::string& word = words[at];
    if (word == "sudo") {
      prefix.sudos.push_back(at);
      const std::size_t options = options_of(words.subspan(at + 1)).words;
      prefix.gone.emplace_back(at, 1 + options);
      at += 1 + options;
    } else if (const std::size_t runner = runner_length(words.subspan(at)); runner > 0) {
      prefix.gone.emplace_back(at, runner);
      at += runner;
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
  prefix.words = std::min(at, words.size());
  return prefix;
}

/// Where each word of a text begins; blanks in quotes or behind a `\` are part of one.
std::vector<std::size_t> word_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  bool inside = false;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool blank = quote == 0 && (c == ' ' || c == '\t');
    if (!blank && !inside) starts.push_back(at);
    inside = !blank;
    if (c == '\\' && quote != '\'') {
      ++at;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
  }
  return starts;
}

}  // namespace

std::size_t runner_length(std::span<const std::string> words) {
  if (words.size() < 3) return 0;
  const std::string_view program = std::string_view(words[0]).substr(words[0].rfind('/') + 1);
  if (!is_among(kRunners, program) || words[1] != "run") return 0;
  std::size_t at = 2;
  while (at < words.size() && words[at].starts_with('-')) {
    if (words[at] == "-m" || words[at] == "--module") break;  // of Python
    if (words[at] == "--") {
      ++at;
      break;
    }
    at += is_among(kRunnerValues, words[at]) ? 2 : 1;
  }
  return std::min(at, words.size() - 1);
}

std::size_t prefix_length(std::span<const std::string> words) { return prefix_of(words).words; }

std::string sudo_user(std::span<const std::string> words) {
  for (const std::size_t at : prefix_of(words).sudos) {
    std::string user = options_of(words.subspan(at + 1)).user;
    if (!user.empty() && user != "root" && user != "#0") return user;
  }
  return {};
}

std::string without_sudo(std::string_view text) {
  const std::vector<std::size_t> starts = word_starts(text);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : text.size();
    words.emplace_back(trim(text.substr(starts[i], end - starts[i])));
  }
  std::string out;
  std::size_t done = 0;
  for (const auto& [at, length] : prefix_of(words).gone) {
    const std::size_t behind = at + length;
    if (behind >= words.size()) return std::string(text);
    out += text.substr(done, starts[at] - done);
    done = starts[behind];
  }
  if (done == 0) return std::string(text);
  return out + std::string(trim(text.substr(done)));
}

}  // namespace mlenv
