#include "recipes/init/needless_commands.hpp"

#include <algorithm>
#include <array>

#include "base/files.hpp"
#include "recipes/init/step_words.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kInPackages =
    "packages of Python lie elsewhere here: a change to one can be a step of `run`";
constexpr std::string_view kWheelBrought =
    "not needed: what is installed is fetched, and kept in mlenv's cache";
constexpr std::string_view kArchives =
    "not needed: packages come from the archives that this machine uses, or `sources` names";
constexpr std::string_view kSettingsOfTools = "not needed: mlenv does without it";
constexpr std::string_view kToolsCache = "not needed: no cache of theirs comes into an image";
constexpr std::string_view kSshSetUp = "not needed: no step here reaches a server by ssh";
constexpr std::string_view kOtherArchives = "archives can be named in `sources`, under `debian`";

/// `rm -rf $(poetry config cache-dir)`, `rm -rf "$(pip cache dir)"`, `rm -r ~/.cache/uv`: of a tool
/// that does not run here.
bool is_tools_cache(std::string_view text) {
  constexpr std::array<std::string_view, 6> kAsking = {
      "$(poetry config cache-dir", "$(pip cache dir",       "$(pip3 cache dir", "$(uv cache dir",
      "$(conda info --base",       "$(pdm config cache_dir"};
  return std::any_of(kAsking.begin(), kAsking.end(),
                     [&](std::string_view one) { return says(text, one); });
}

}  // namespace

std::string_view why_needless(const ShellCommand& one, const std::vector<std::string>& bare) {
  if (!one.alone || bare.empty()) return {};
  if (changes_archives(one, bare)) return kArchives;
  constexpr std::array<std::string_view, 4> kTools = {"poetry", "pipx", "pdm", "pipenv"};
  constexpr std::array<std::string_view, 5> kSettings = {"config", "self", "cache", "ensurepath",
                                                         "env"};
  if (bare.size() > 1 && is_among(kTools, bare[0]) && is_among(kSettings, bare[1])) {
    return kSettingsOfTools;
  }
  constexpr std::array<std::string_view, 3> kWriting = {"echo", "printf", "cat"};
  if (is_among(kWriting, bare.front()) && says(one.text, "/etc/apt/sources.list")) {
    return kOtherArchives;
  }
  constexpr std::array<std::string_view, 6> kChanging = {"cp", "mv", "rm", "ln", "sed", "chmod"};
  if (bare.front() == "ln" && says(one.text, "/bin/poetry")) return kSettingsOfTools;
  if (bare.front() == "rm" && is_tools_cache(one.text)) return kToolsCache;
  const bool packages = says(one.text, "/site-packages/") || says(one.text, "/dist-packages/");
  if (packages && is_among(kChanging, bare.front())) return kInPackages;
  constexpr std::array<std::string_view, 5> kOfSsh = {"mkdir", "chmod", "touch", "echo", "printf"};
  if (bare.front() == "ssh-keyscan" || bare.front() == "ssh-add" ||
      (is_among(kOfSsh, bare.front()) && says(one.text, "/.ssh"))) {
    return kSshSetUp;
  }
  constexpr std::array<std::string_view, 3> kDownloaders = {"wget", "curl", "aria2c"};
  if (is_among(kDownloaders, bare.front()) && says(one.text, ".whl")) return kWheelBrought;
  return {};
}

namespace {

/// `20` of `20.x`, `lts` of `lts.x`.
std::string node_release_at(std::string_view text) {
  constexpr std::string_view kAnyOf = ".x";
  const std::size_t end = text.find_first_not_of("0123456789");
  if (end != 0 && end != std::string_view::npos && end < 3 && text.substr(end).starts_with(kAnyOf))
    return std::string(text.substr(0, end));
  for (const std::string_view word : {"lts", "current"}) {
    if (text.starts_with(word) && text.substr(word.size()).starts_with(kAnyOf)) {
      return std::string(word);
    }
  }
  return {};
}

}  // namespace

std::string node_release(std::string_view text) {
  for (const std::string_view begin : {"setup_", "node_"}) {
    for (std::size_t at = text.find(begin); at != std::string_view::npos;
         at = text.find(begin, at + 1)) {
      if (std::string release = node_release_at(text.substr(at + begin.size())); !release.empty())
        return release;
    }
  }
  return {};
}

bool reads_program(const ShellCommand& one) {
  const std::vector<std::string> words = program_words(one);
  constexpr std::array<std::string_view, 6> kReading = {"sh",  "bash", "env",
                                                        "tee", "gpg",  "apt-key"};
  return !words.empty() && is_among(kReading, words.front());
}

bool brings_node(const ShellCommand& one) {
  const std::vector<std::string> words = program_words(one);
  constexpr std::array<std::string_view, 11> kPrograms = {
      "curl", "wget", "echo", "printf", "gpg", "tee", "bash", "sh", "rm", "apt-key", "chmod"};
  if (words.empty() || !is_among(kPrograms, words.front())) return false;
  return says(one.text, "nodesource") || !node_release(one.text).empty();
}

bool is_of_nvidias_archive(const ShellCommand& one) {
  const std::vector<std::string> words = program_words(one);
  constexpr std::array<std::string_view, 11> kPrograms = {
      "wget", "curl", "dpkg", "apt-key", "echo", "add-apt-repository",
      "mv",   "rm",   "cp",   "gpg",     "tee"};
  constexpr std::array<std::string_view, 5> kMarks = {"cuda-keyring", "cuda-repo-",
                                                      "nvidia-machine-learning",
                                                      "compute/cuda/repos", "cuda-archive-keyring"};
  const bool marked = std::any_of(kMarks.begin(), kMarks.end(),
                                  [&](std::string_view mark) { return says(one.text, mark); });
  return marked && (words.empty() || is_among(kPrograms, words.front()));
}

std::vector<std::string> with_addresses(std::vector<std::string> words,
                                        const std::vector<std::string>& wheels) {
  for (std::string& word : words) {
    if (!word.ends_with(".whl") || says(word, "://")) continue;
    const std::string name = fs::path(word).filename().string();
    for (const std::string& address : wheels) {
      std::string file = address.substr(address.rfind('/') + 1);
      for (std::size_t at = file.find("%2B"); at != std::string::npos; at = file.find("%2B")) {
        file.replace(at, 3, "+");
      }
      if (file == name || (name == "*.whl" && wheels.size() == 1)) word = address;
    }
  }
  return words;
}

std::string script_named_by(const ShellCommand& one) {
  std::vector<std::string> words = program_words(one);
  if (!one.alone || !one.simple || words.empty()) return {};
  const bool shell = words.front() == "bash" || words.front() == "sh";
  if (shell) {
    std::erase_if(words, [](const std::string& word) { return word.starts_with('-'); });
    if (words.size() != 2) return {};
  } else if (words.size() != 1 || !one.words.back().ends_with(".sh")) {
    return {};
  }
  return shell ? words.back() : one.words.back();
}

}  // namespace mlenv
