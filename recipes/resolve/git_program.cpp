#include "recipes/resolve/git_program.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/log.hpp"
#include "base/proxy_words.hpp"
#include "recipes/logins.hpp"
#include "recipes/resolve/host_logins.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Of a hook or a shell that mlenv was started from (git rev-parse --local-env-vars, and who asks).
constexpr std::array<std::string_view, 16> kUnwantedGitVariables = {
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_QUARANTINE_PATH",
    "SSH_ASKPASS",
    "LC_ALL",
    "LANGUAGE"};

Command git_command(const std::vector<std::string>& arguments, bool batch_ssh) {
  const auto program = find_program("git");
  if (!program) {
    throw failure("no-git", "there is no `git` on this machine, and the recipe names a repository")
        .hint("install it, on Debian as `apt-get install git`");
  }
  Command command{Purpose{"git-fetch"}};
  command.argv = {program->string(),
                  "-c",
                  "core.hooksPath=/dev/null",
                  "-c",
                  "fetch.recurseSubmodules=false",
                  "-c",
                  "gc.auto=0",
                  "-c",
                  "maintenance.auto=false",
                  "-c",
                  "protocol.ext.allow=never",
                  "-c",
                  "advice.detachedHead=false"};
  for (const std::string& word : git_login_options(arguments)) command.argv.push_back(word);
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = git_environment(own_environment(), batch_ssh);
  narrow_git_home(environment, arguments);
  // A repository on this machine is served by a git that obeys what stands in it: where objects are
  // absent, that could name a program to get them by.
  const bool local = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word.starts_with("file:") || word.starts_with('/');
  });
  if (local) environment.emplace_back("GIT_NO_LAZY_FETCH=1");
  command.env = std::move(environment);
  command.folder = "/";  // settings of a repository that mlenv was called in are not the user's
  return command;
}

/// Whether the user's settings say how git runs ssh; what they say then stays.
bool has_own_ssh() {
  const Captured said = run_captured(git_command({"config", "--get", "core.sshCommand"}, false),
                                     std::chrono::seconds(30));
  return said.exit.code == 0;
}

bool batch_ssh() {
  static const bool batch = !has_own_ssh();
  return batch;
}

/// git's, without a login of the address or of a proxy.
std::string public_words(std::string_view said) {
  return without_logins(without_proxy(std::string(trim(said))));
}

}  // namespace

std::vector<std::string> git_environment(const std::vector<std::string>& own, bool batch) {
  std::vector<std::string> kept;
  for (const std::string& text : own) {
    const std::string_view name = std::string_view(text).substr(0, text.find('='));
    if (std::find(kUnwantedGitVariables.begin(), kUnwantedGitVariables.end(), name) !=
        kUnwantedGitVariables.end())
      continue;
    if (name == "GIT_SSH_COMMAND" || name == "GIT_SSH") batch = false;
    kept.push_back(text);
  }
  kept.emplace_back("LC_ALL=C.UTF-8");
  kept.emplace_back("GIT_TERMINAL_PROMPT=0");
  kept.emplace_back("GCM_INTERACTIVE=never");
  if (batch) kept.emplace_back("GIT_SSH_COMMAND=ssh -o BatchMode=yes");
  return kept;
}

Captured run_git(const std::vector<std::string>& arguments, std::chrono::milliseconds deadline) {
  Captured said = run_captured(git_command(arguments, batch_ssh()), deadline);
  log::debug("git {}: exit {}, {}", arguments.front(), said.exit.code, public_words(said.err));
  return said;
}

Exit run_git(const std::vector<std::string>& arguments, int input, int output,
             std::chrono::milliseconds deadline) {
  Command command = git_command(arguments, false);
  command.stdin_fd = input;
  command.stdout_fd = output;
  Child child(command);
  if (const auto exit = child.wait(deadline)) return *exit;
  throw failure("timeout", "`git` did not end in time");
}

Error git_error(const std::string& url, const Captured& said) {
  Error error = failure("git-failed", "`{}` cannot be fetched", display_url(url));
  std::string_view rest = said.err;
  while (!rest.empty() && error.frames().size() < 6) {
    const std::size_t end = rest.find('\n');
    std::string line = with_display_url(public_words(rest.substr(0, end)));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    for (const std::string_view prefix : {"fatal: ", "error: ", "remote: "}) {
      if (line.starts_with(prefix)) line.erase(0, prefix.size());
    }
    if (!line.empty()) error.because(line);
  }
  return std::move(error).hint(
      "check the address, the network and your login: `git ls-remote URL` must work without asking "
      "(an ssh key in the agent, a credential helper, ~/.netrc)");
}

}  // namespace mlenv
