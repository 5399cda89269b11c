#include "runner/record/git_repository.hpp"

#include <unistd.h>
#include <chrono>

#include <fmt/core.h>

#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::seconds kDeadline{60};

/// Of the caller; a repository that it is at work in is not the project's. Nothing is fetched, and
/// root does not trust the repository of whoever called sudo (git(1), "safe.directory").
std::vector<std::string> quiet_environment() {
  std::vector<std::string> kept;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view text = *at;
    if (text.starts_with("SUDO_UID=")) continue;
    if (!text.starts_with("GIT_") || text.starts_with("GIT_CONFIG")) kept.emplace_back(text);
  }
  kept.emplace_back("GIT_ALLOW_PROTOCOL=");
  kept.emplace_back("GIT_NO_LAZY_FETCH=1");
  kept.emplace_back("LC_ALL=C.UTF-8");
  kept.emplace_back("GIT_OPTIONAL_LOCKS=0");  // git(1): status then does not rewrite the index
  return kept;
}

/// Programs that the repository's own settings name as filters of its files are not run; those
/// of the person's and the machine's settings are (gitattributes(5), "filter").
std::vector<std::string> without_filters(const Captured& found) {
  std::vector<std::string> settings;
  const std::vector<std::string_view> parts = split(found.out, '\0');  // scope, name, scope, …
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    if (parts[i] != "local" && parts[i] != "worktree") continue;
    settings.insert(
        settings.end(),
        {"-c", std::string(parts[i + 1]) + (parts[i + 1].ends_with("required") ? "=false" : "=")});
  }
  return settings;
}

}  // namespace

GitRepository::GitRepository(const fs::path& project, const std::optional<fs::path>& index)
    : project_(project), environment_(quiet_environment()) {
  if (index) environment_.push_back("GIT_INDEX_FILE=" + index->string());
  settings_ = without_filters(said({"config", "--show-scope", "--name-only", "-z", "--get-regexp",
                                    R"(^filter\..*\.(clean|smudge|process|required)$)"}));
}

std::string GitRepository::ask(const std::vector<std::string>& words) const {
  Captured answer = said(words);
  if (answer.exit.code == 0) return std::move(answer.out);
  const std::string_view first = std::string_view(answer.err).substr(0, answer.err.find('\n'));
  throw NotKnown(fmt::format("git: {}", trim(first)));
}

Captured GitRepository::said(const std::vector<std::string>& words) const {
  Command command{Purpose{"git-state"}};
  command.argv = {"git", "-C", project_.string(), "-c", "core.fsmonitor=false"};
  command.argv.insert(command.argv.end(), settings_.begin(), settings_.end());
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.env = environment_;
  return run_captured(command, kDeadline);
}

}  // namespace mlenv
