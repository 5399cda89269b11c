#include "recipes/init/build_commands.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/core.h>

#include "recipes/init/docker_words.hpp"
#include "recipes/init/listed_words.hpp"
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

/// Programs that change nothing which lasts.
constexpr std::array<std::string_view, 14> kShowing = {
    "cd", "echo", "printf", "[",      "test", "[[",    ":",
    "ls", "pwd",  "which",  "whoami", "exit", "sleep", "nvidia-smi"};

bool only_shows(const ShellCommand& one) {
  return one.simple && one.alone && !one.words.empty() && is_among(kShowing, one.words.front());
}

/// Users of the image, which has root alone.
constexpr std::array<std::string_view, 12> kUserPrograms = {
    "useradd", "adduser", "groupadd", "addgroup", "usermod", "groupmod",
    "chown",   "chgrp",   "passwd",   "chpasswd", "userdel", "fix-permissions"};
constexpr std::string_view kUsers =
    "the image's user is root, and its files are root's: whoever runs it needs no user in it";

/// The folder that `useradd -m NAME` makes; empty: none.
std::string home_made_by(const std::vector<std::string>& words) {
  if (words.size() < 2 || (words.front() != "useradd" && words.front() != "adduser")) return {};
  bool makes = words.front() == "adduser";
  std::string home;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--create-home") makes = true;
    if (word.starts_with('-') && !word.starts_with("--") && says(word, "m")) makes = true;
    if (word == "--system" || word == "--no-create-home" || word == "-M") makes = false;
    if (word == "-d" || word == "--home" || word == "--home-dir") home = words[i + 1];
  }
  return !makes ? "" : home.empty() ? "/home/" + words.back() : home;
}

/// Whether it adds an archive that the distribution has not.
bool adds_archive(const ShellCommand& one, const std::vector<std::string>& words) {
  if (words.empty()) return false;
  constexpr std::array<std::string_view, 3> kPrograms = {"add-apt-repository", "apt-add-repository",
                                                         "apt-key"};
  if (is_among(kPrograms, words.front())) return true;
  for (const std::string_view place : {"/etc/apt/sources.list", "/etc/apt/keyrings",
                                       "/etc/apt/trusted", "nodesource", "keyring"}) {
    if (says(one.text, place)) return true;
  }
  return false;
}

class Converter {
 public:
  Converter(const BuildCommands& commands, const FindFile& file, Conversion& to)
      : commands_(commands),
        file_(file),
        to_(to),
        memory_(commands.memory == nullptr ? own_memory_ : *commands.memory),
        folder_(commands.folder) {}

  void convert() {
    const std::vector<ShellCommand> all =
        with_listed_words(shell_commands(commands_.text, commands_.known), file_);
    if (std::any_of(all.begin(), all.end(), [](const ShellCommand& one) { return one.control; })) {
      return leave_out(commands_.text,
                       "a script of the shell: name what it installs under `packages` and "
                       "`system`, and write the rest as a step of `run`");
    }
    const std::vector<ShellCommand> rest = without_installs(all);
    if (!std::all_of(rest.begin(), rest.end(), only_shows)) step(rest);
  }

 private:
  /// What is left for a step when packages are installed.
  std::vector<ShellCommand> without_installs(const std::vector<ShellCommand>& all) {
    std::vector<ShellCommand> rest;
    for (const ShellCommand& one : all) {
      if (is_of_tool(one)) continue;
      if (one.group.empty()) {
        if (!taken(one)) rest.push_back(one);
      } else {
        group(one, rest);
      }
    }
    return rest;
  }

  /// `curl … | sh` of a tool that mlenv does without.
  bool is_of_tool(const ShellCommand& one) {
    constexpr std::array<std::string_view, 5> kReading = {"sh", "bash", "env", "sudo", "tar"};
    const std::string program = one.words.empty() ? "" : one.words.front();
    const bool reads =
        piped_ && !one.alone && (is_among(kReading, program) || program.starts_with("python"));
    const bool rust_too = says(one.text, "sh.rustup.rs") && !one.alone;
    const bool brings = brings_tool(one.text) || rust_too;
    if (says(one.text, "sh.rustup.rs") && brings) {
      rust(one);
    } else if (brings && !reads) {
      leave_out(one.text, kNoTool);
    }
    piped_ = brings || reads;
    return piped_;
  }

  /// Whether a key of the recipe says it, or it is not needed.
  bool taken(const ShellCommand& one) {
    const std::vector<std::string> bare = program_words(one);
    foreign_ = foreign_ || adds_archive(one, bare);
    if (!bare.empty() && one.alone && is_among(kUserPrograms, bare.front())) {
      leave_out(one.text, kUsers);
      std::string home = home_made_by(bare);
      if (!home.empty()) memory_.homes.push_back(std::move(home));
      return true;
    }
    if (!one.simple || !one.alone) return false;
    if (one.words.size() > 1 && one.words.front() == "cd") {
      folder_ = (fs::path(folder_) / one.words[1]).lexically_normal().string();
    }
    if (auto clone = clone_of(bare, folder_)) memory_.clones.push_back(*std::move(clone));
    return convert_install(
        {commands_.place, one.words, one.text, folder_, memory_.clones, foreign_}, file_, to_);
  }

  /// `(cd x && pip install . && make)`: what is left of it, in a group again.
  void group(const ShellCommand& one, std::vector<ShellCommand>& rest) {
    const std::string before = folder_;
    const std::vector<ShellCommand> inside =
        with_listed_words(shell_commands(one.group, commands_.known), file_);
    const bool plain =
        one.alone && std::none_of(inside.begin(), inside.end(), [](const auto& each) {
          return each.control || !each.group.empty();
        });
    if (!plain) return rest.push_back(one);
    const std::vector<ShellCommand> left = without_installs(inside);
    folder_ = before;
    if (std::all_of(left.begin(), left.end(), only_shows)) return;
    const bool whole = std::all_of(left.begin(), left.end(),
                                   [](const auto& each) { return step_obstacle(each).empty(); });
    if (!whole) {
      rest.insert(rest.end(), left.begin(), left.end());
      return;
    }
    ShellCommand made = one;
    made.text.clear();
    made.words = left.front().words;
    for (const ShellCommand& each : left) {
      made.text += (made.text.empty() ? "" : " && ") + each.text;
      if (fetches(program_words(each))) made.words = each.words;
    }
    made.text = left.size() == inside.size() ? one.text : '(' + made.text + ')';
    rest.push_back(std::move(made));
  }

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
    for (const std::string& home : memory_.homes) {
      if (says(text, home)) text.insert(0, fmt::format("mkdir -p {}\n", shell_quoted(home)));
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
  BuildMemory own_memory_;
  BuildMemory& memory_;
  std::string folder_;    ///< where the next command starts
  bool piped_ = false;    ///< into a shell, from what is not needed
  bool foreign_ = false;  ///< an archive was added
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
