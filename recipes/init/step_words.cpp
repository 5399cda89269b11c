#include "recipes/init/step_words.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "recipes/init/converters.hpp"
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

/// Programs that change nothing which lasts.
constexpr std::array<std::string_view, 18> kShowing = {
    ".",  "source", "cd", "export", "unset", "echo",   "printf", "[",     "test",
    "[[", ":",      "ls", "pwd",    "which", "whoami", "exit",   "sleep", "nvidia-smi"};

/// Users of the image, which has root alone.
constexpr std::array<std::string_view, 13> kUserPrograms = {
    "useradd", "adduser", "groupadd", "addgroup", "usermod",         "groupmod", "chown",
    "chgrp",   "passwd",  "chpasswd", "userdel",  "fix-permissions", "chsh"};

/// Where conda and its kin are, and what leads there.
constexpr std::array<std::string_view, 8> kCondaPlaces = {
    "conda shell.", "mamba shell ",    "/opt/conda", "/miniconda",
    "/anaconda",    "source activate", "conda init", "conda activate"};

}  // namespace

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

bool installs_something(const ShellCommand& command) {
  std::vector<std::string> words = program_words(command);
  if (words.empty()) return false;
  if (words.front() == "xargs") return true;
  const bool manager = std::any_of(kManagers.begin(), kManagers.end(), [&](const Manager& one) {
    return one.program == words.front();
  });
  const bool python = words.front().starts_with("python") && words.size() > 2;
  constexpr std::array<std::string_view, 6> kModules = {"pip", "poetry", "pipenv",
                                                        "pdm", "uv",     "pipx"};
  const bool pip = python && words[1] == "-m" && is_among(kModules, words[2]);
  const bool setup = python && words[1] == "setup.py";
  return manager || pip || setup || is_among(kInstallers, words.front()) ||
         adds_archive(command, words) || brings_tool(command.text);
}

std::string_view step_obstacle(const ShellCommand& command) {
  if (!command.alone) {
    return "a pipe or a choice: write it as a step of `run` if the image needs it";
  }
  const std::vector<std::string> words = program_words(command);
  if (words.empty()) return {};
  if (!sudo_user(command.words).empty()) {
    return "it runs as another user, and steps run as root: write it as a step of `run` if it may";
  }
  if (const auto clone = clone_of(words, ""); clone && is_by_ssh(*clone)) {
    return "only ssh reaches that repository, and steps have no key: clone it here, and name its "
           "folder in `files`";
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

namespace {

bool is_name_letter(char c) { return is_alphanumeric(c) || c == '_'; }

/// `NAME=x`, `for NAME in`, `read -r NAME`
bool gives_variable(std::string_view text, const std::string& name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (at > 0 && (is_name_letter(text[at - 1]) || text[at - 1] == '$' || text[at - 1] == '{')) {
      continue;
    }
    if (end < text.size() && is_name_letter(text[end])) continue;
    if (text.substr(end).starts_with('=')) return true;
    const std::string_view line = text.substr(0, at);
    const std::size_t begin = line.find_last_of(";\n&|(");
    const std::string_view command =
        trim(line.substr(begin == std::string_view::npos ? 0 : begin + 1));
    for (const std::string_view word : {"for", "read", "local", "declare", "mapfile", "getopts"}) {
      if (command.ends_with(word) || says(command, fmt::format("{} ", word))) return true;
    }
  }
  return false;
}

}  // namespace

bool needs_variable(std::string_view text, const std::string& name) {
  bool needs = false;
  for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    if (at > 0 && text[at - 1] == '\\') continue;
    std::string_view rest = text.substr(at + 1);
    const bool braces = rest.starts_with('{');
    if (braces) rest.remove_prefix(1);
    if (!rest.starts_with(name)) continue;
    rest.remove_prefix(name.size());
    if (!rest.empty() && is_name_letter(rest.front())) continue;
    if (rest.starts_with(':')) rest.remove_prefix(1);
    const bool defaults =
        braces && !rest.empty() && (rest[0] == '-' || rest[0] == '+' || rest[0] == '=');
    needs = needs || !defaults;
  }
  return needs && !gives_variable(text, name);
}

bool only_shows(const ShellCommand& one) {
  if (!one.inside.empty()) return std::all_of(one.inside.begin(), one.inside.end(), only_shows);
  if (!one.alone || !one.group.empty()) return false;
  // `A=$(b)` alone lasts no longer than its shell.
  if (program_words(one).empty()) return !one.words.empty();
  // `. $HOME/.local/bin/env`
  const bool reads =
      one.words.front() == "." || one.words.front() == "source" || one.words.front() == "cd";
  return (one.simple && is_among(kShowing, one.words.front())) || one.words.front() == "export" ||
         (reads && one.text.find('>') == std::string::npos);
}

std::string made_repeatable(std::string text, const std::vector<std::string>& words) {
  constexpr std::string_view kProgram = "mkdir ";
  const bool parents = std::any_of(words.begin(), words.end(), [](const std::string& one) {
    return one == "--parents" ||
           (one.starts_with('-') && !one.starts_with("--") && one.find('p') != std::string::npos);
  });
  if (text.starts_with(kProgram) && !parents) text.insert(kProgram.size(), "-p ");
  return text;
}

bool is_of_users(const ShellCommand& one, const std::vector<std::string>& words) {
  return !words.empty() &&
         (says(one.text, "/etc/sudoers") || is_among(kUserPrograms, words.front()));
}

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

bool is_ordinary_pipe(const std::vector<ShellCommand>& all) {
  constexpr std::array<std::string_view, 10> kReading = {"sh",  "bash", "zsh",     "sudo",  "tee",
                                                         "gpg", "env",  "apt-key", "xargs", "R"};
  return all.size() > 1 && std::all_of(all.begin(), all.end(), [&](const ShellCommand& one) {
           const std::vector<std::string> words = program_words(one);
           return !one.alone && one.group.empty() && !words.empty() &&
                  !is_among(kReading, words.front()) && !words.front().starts_with("python") &&
                  !installs_something(one) && !says(one.text, "/etc/apt");
         });
}

std::vector<std::string> packages_of_step(std::string_view command) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kPrograms = {
      {{"curl", "curl"},
       {"wget", "wget"},
       {"aria2c", "aria2"},
       {"git", "git"},
       {"git-lfs", "git-lfs"},
       {"unzip", "unzip"},
       {"make", "make"},
       {"cmake", "cmake"},
       {"jq", "jq"}}};
  std::vector<std::string> packages;
  std::vector<ShellCommand> all = shell_commands(command, {});
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (const std::string group = all[i].group; !group.empty()) {
      for (ShellCommand& each : shell_commands(group, {})) all.push_back(std::move(each));
    }
    const std::vector<std::string> words = program_words(all[i]);
    if (words.size() > 2 && words[0] == "bash" && words[words.size() - 2] == "-c") {
      for (ShellCommand& each : shell_commands(words.back(), {})) all.push_back(std::move(each));
    }
    for (const auto& [program, package] : kPrograms) {
      if (!words.empty() && words.front() == program) packages.emplace_back(package);
    }
  }
  return packages;
}

bool changes_archives(const ShellCommand& one, const std::vector<std::string>& words) {
  if (words.empty() ||
      (!says(one.text, "/etc/apt/sources.list") && !says(one.text, "/etc/apt/apt.conf"))) {
    return false;
  }
  constexpr std::array<std::string_view, 5> kChanging = {"sed", "cp", "mv", "rm", "mkdir"};
  return is_among(kChanging, words.front()) || says(one.text, "/etc/apt/apt.conf");
}

bool adds_archive(const ShellCommand& one, const std::vector<std::string>& words) {
  if (words.empty() || changes_archives(one, words)) return false;
  constexpr std::array<std::string_view, 3> kPrograms = {"add-apt-repository", "apt-add-repository",
                                                         "apt-key"};
  if (is_among(kPrograms, words.front())) return true;
  for (const std::string_view place : {"/etc/apt/sources.list", "/etc/apt/keyrings",
                                       "/etc/apt/trusted", "nodesource", "keyring"}) {
    if (says(one.text, place)) return true;
  }
  return false;
}
bool is_of_another_python(const ShellCommand& one, bool of_packages) {
  const std::vector<std::string> words = program_words(one);
  if (words.empty()) return false;
  const bool links = words.front() == "update-alternatives" || words.front() == "ln";
  if (links && (says(one.text, "/bin/python") || says(one.text, "/bin/pip") ||
                says(one.text, "--config python"))) {
    return true;
  }
  // `/opt/conda/bin/conda install x` is read.
  constexpr std::array<std::string_view, 6> kRead = {"conda", "mamba", "micromamba",
                                                     "pip",   "pip3",  "source"};
  if (!of_packages || is_among(kRead, words.front())) return false;
  return std::any_of(kCondaPlaces.begin(), kCondaPlaces.end(),
                     [&](std::string_view place) { return says(one.text, place); });
}

}  // namespace mlenv
