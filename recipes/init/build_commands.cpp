#include "recipes/init/build_commands.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/core.h>

#include "recipes/init/docker_words.hpp"
#include "recipes/init/run_prefix.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Programs that fetch what they work on.
constexpr std::array<std::string_view, 15> kFetching = {
    "curl", "wget", "aria2c", "git-lfs", "npm", "npx",    "yarn",           "pnpm",
    "go",   "gem",  "cargo",  "rustup",  "hf",  "gsutil", "huggingface-cli"};
constexpr std::array<std::string_view, 6> kFetchingGit = {"clone", "fetch",     "pull",
                                                          "lfs",   "submodule", "ls-remote"};

/// Programs whose effects have keys of their own, which say them better.
struct Manager {
  std::string_view program;
  std::string_view why;
};
constexpr std::string_view kNoTool = "not needed: mlenv does without it";
constexpr std::string_view kConda =
    "packages of conda have no key: name them under `packages`, as their wheels are called";
constexpr std::string_view kProject =
    "a lock of the project can be named: `requirements: [uv.lock]`, or a pylock.toml of another "
    "tool's";
constexpr std::array<Manager, 9> kManagers = {
    {{"conda", kConda},
     {"mamba", kConda},
     {"micromamba", kConda},
     {"poetry", kProject},
     {"pdm", kProject},
     {"pipenv", kProject},
     {"uv", kProject},
     {"add-apt-repository", "archives can be named in `sources`, under `debian`"},
     {"apt-key", "archives can be named in `sources`, under `debian`, with their keys"}}};
/// What installs packages, also where it is written in a way that cannot be taken apart.
constexpr std::array<std::string_view, 7> kInstallers = {"apt-get", "apt",  "aptitude", "pip",
                                                         "pip3",    "dpkg", "yum"};

/// The words from the program on, without what only changes how it is run.
std::vector<std::string> program_words(const ShellCommand& command) {
  const auto first =
      command.words.begin() + static_cast<std::ptrdiff_t>(prefix_length(std::span(command.words)));
  std::vector<std::string> words(first, command.words.end());
  if (!words.empty()) words.front().erase(0, words.front().rfind('/') + 1);
  return words;
}

bool fetches(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  if (is_among(kFetching, words.front())) return true;
  const bool python = words.front().starts_with("python");
  for (const std::string& word : words) {
    if (says(word, "https://") || says(word, "http://")) return true;
    if (python &&
        (says(word, "download") || says(word, "from_pretrained") || says(word, "load_dataset"))) {
      return true;
    }
  }
  return words.front() == "git" && std::any_of(words.begin(), words.end(), [](const auto& word) {
           return is_among(kFetchingGit, word);
         });
}

/// Why the command is none of a step; empty: it is.
std::string_view step_obstacle(const ShellCommand& command) {
  if (!command.alone) {
    return "a pipe or a choice: write it as a step of `run` if the image needs it";
  }
  const std::vector<std::string> words = program_words(command);
  if (words.empty()) return {};
  if (!sudo_user(command.words).empty()) {
    return "it runs as another user, and steps run as root: write it as a step of `run` if it may";
  }
  for (const Manager& one : kManagers) {
    if (one.program == words.front()) return one.why;
  }
  const bool module = words.front().starts_with("python") && words.size() > 2 && words[1] == "-m" &&
                      words[2] == "pip";
  if (module || is_among(kInstallers, words.front())) {
    return "substitutions, redirections or unknown variables make it no plain install command";
  }
  return {};
}

/// Whether `$NAME` or `${NAME…` is in it.
bool names_variable(std::string_view text, const std::string& name) {
  for (const std::string& start : {"$" + name, "${" + name}) {
    for (std::size_t at = text.find(start); at != std::string_view::npos;
         at = text.find(start, at + 1)) {
      const std::size_t end = at + start.size();
      if (end == text.size() || (!is_alphanumeric(text[end]) && text[end] != '_')) return true;
    }
  }
  return false;
}

class Converter {
 public:
  Converter(const BuildCommands& commands, const FindFile& file, Conversion& to)
      : commands_(commands), file_(file), to_(to) {}

  // NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
  void convert() {
    const std::vector<ShellCommand> all = shell_commands(commands_.text, commands_.known);
    if (std::any_of(all.begin(), all.end(), [](const ShellCommand& one) { return one.control; })) {
      return leave_out(commands_.text,
                       "a script of the shell: name what it installs under `packages` and "
                       "`system`, and write the rest as a step of `run`");
    }
    std::vector<ShellCommand> rest;
    std::vector<Clone> own;
    std::vector<Clone>& clones = commands_.clones == nullptr ? own : *commands_.clones;
    std::string folder = commands_.folder;
    bool piped = false;  // into a shell, from what is not needed
    for (const ShellCommand& one : all) {
      const std::string program = one.words.empty() ? "" : one.words.front();
      const bool reads = !one.alone && piped &&
                         (program == "sh" || program == "bash" || program.starts_with("python") ||
                          program == "env" || program == "sudo" || program == "tar");
      piped = brings_tool(one.text) || (says(one.text, "sh.rustup.rs") && !one.alone);
      if (piped && says(one.text, "sh.rustup.rs")) rust(one);
      if (piped || reads) {
        piped = piped || reads;
        if (!reads && !says(one.text, "sh.rustup.rs")) leave_out(one.text, kNoTool);
        continue;
      }
      const bool plain = one.simple && one.alone;
      if (plain && one.words.size() > 1 && program == "cd") {
        folder = (fs::path(folder) / one.words[1]).lexically_normal().string();
      }
      const std::vector<std::string> bare = program_words(one);
      if (auto clone = clone_of(bare, folder); plain && clone) clones.push_back(*std::move(clone));
      const InstallCommand command{commands_.place, one.words, one.text, folder, clones};
      if (plain && convert_install(command, file_, to_)) continue;
      rest.push_back(one);
    }
    const bool stays = std::all_of(rest.begin(), rest.end(), [](const ShellCommand& one) {
      return one.simple && !one.words.empty() && one.words.front() == "cd";
    });
    if (!stays) step(rest);
  }

 private:
  void rust(const ShellCommand& one) {
    to_.system_package(commands_.place, "rustc");
    to_.system_package(commands_.place, "cargo");
    leave_out(one.text, "Rust is Debian's here, in `system`");
  }

  void leave_out(std::string_view text, std::string_view why) {
    to_.leave_out(commands_.place, text, why);
  }

  /// All of them or none: half of what belongs together would fail, or do something else.
  void step(const std::vector<ShellCommand>& rest) {
    bool possible = commands_.obstacle.empty();
    for (const ShellCommand& one : rest) possible = possible && step_obstacle(one).empty();
    if (!possible) {
      for (const ShellCommand& one : rest) {
        const std::string_view why = step_obstacle(one);
        leave_out(one.text, !why.empty()                 ? why
                            : commands_.obstacle.empty() ? "it belongs to what cannot be taken over"
                                                         : commands_.obstacle);
      }
      return;
    }
    Conversion::Step made{commands_.folder, {}};
    std::string text;
    for (const ShellCommand& one : rest) {
      text += (text.empty() ? "" : "\n") + without_sudo(one.text);
      made.step.network = made.step.network || fetches(program_words(one));
    }
    for (const auto& [name, value] : commands_.arguments) {
      if (names_variable(text, name))
        text.insert(0, fmt::format("{}={}\n", name, shell_quoted(value)));
    }
    if (commands_.bash) {
      text = "bash -euo pipefail -c " + shell_quoted(text);
    }
    if (has_control(text, "\t\n")) return leave_out(commands_.text, "control characters are in it");
    made.step.command = std::move(text);
    made.step.secrets = commands_.secrets;
    to_.add_step(std::move(made));
  }

  const BuildCommands& commands_;
  const FindFile& file_;
  Conversion& to_;
};

}  // namespace

void convert_commands(const BuildCommands& commands, const FindFile& file, Conversion& to) {
  Converter(commands, file, to).convert();
}

std::string shell_quoted(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return is_alphanumeric(c) || std::string_view("._/-:@+,=%").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

}  // namespace mlenv
