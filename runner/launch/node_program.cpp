#include "runner/launch/node_program.hpp"

#include <fcntl.h>
#include <sys/utsname.h>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/file_digest.hpp"

namespace mlenv::job {
namespace {

std::string own_architecture() {
  utsname name{};
  ::uname(&name);
  return static_cast<const char*>(name.machine);
}

// In both there is no single quote, `!`, backslash or line end, so that any shell passes them on.
// Nothing of the standard input is read beyond the program: it ends with it.
constexpr std::string_view kWhere =
    "d=${{XDG_CACHE_HOME:-$HOME/.cache}}/mlenv/node/{0}; p=$d/mlenv-node; ";

constexpr std::string_view kTake =
    "umask 077; "
    "say() {{ echo \"$*\" >&2; exit 90; }}; "
    "whole() {{ echo \"{0}  $1\" | sha256sum -c - >/dev/null 2>&1; }}; "
    "m=$(uname -m); "
    "[ \"$m\" = {1} ] || say \"this node is a $m, and the mlenv-node that would run here is for "
    "{1}\"; "
    "command -v sha256sum >/dev/null || say \"there is no sha256sum here\"; "
    "if ! whole \"$p\"; then "
    "mkdir -p \"$d\" || say \"mlenv-node cannot be put into $d\"; "
    "t=$d/.tmp-$(uname -n)-$$; clean() {{ rm -f \"$t\"; }}; trap clean EXIT; "
    "cat >\"$t\" || say \"mlenv-node cannot be put into $d\"; "
    "whole \"$t\" || say \"mlenv-node did not arrive whole in $d\"; "
    "chmod 700 \"$t\" || say \"mlenv-node cannot be put into $d\"; "
    // Another job may have brought it meanwhile, and be running it: then that one stays, since a
    // program whose file is replaced does not find itself any more.
    "ln \"$t\" \"$p\" 2>/dev/null || whole \"$p\" || mv -f \"$t\" \"$p\" || "
    "say \"mlenv-node cannot be put into $d\"; "
    "fi; "
    "\"$p\" --version >/dev/null || say \"$p cannot be run: does its file system forbid programs "
    "(noexec)? XDG_CACHE_HOME of this user could name another\"";

constexpr std::string_view kRunAgent = "exec \"$p\" agent";

/// On this machine: the program first, then the agent in this process's place. What the first one
/// prints is for people.
constexpr const char* kBoth =
    "take=$1 run=$2; shift 2; "
    "\"$@\" \"$take\" <&3 3<&- >&2 || exit; "
    "exec \"$@\" \"$run\" 3<&-";
constexpr int kProgramFd = 3;

}  // namespace

NodeProgram::NodeProgram(fs::path file) : file_(std::move(file)) {
  const std::string hex =
      while_doing("reading the program of nodes", [&] { return digest_of_file(file_).hex(); });
  const std::string where = fmt::format(kWhere, hex);
  take_ = where + fmt::format(kTake, hex, own_architecture());
  run_ = where + std::string(kRunAgent);
}

std::string NodeProgram::for_any_shell(const std::string& script) {
  return "exec sh -c '" + script + "'";
}

NodeProgram::Carried NodeProgram::carried_by(const std::vector<std::string>& words,
                                             bool any_shell) const {
  const auto shown = [any_shell](const std::string& script) {
    return any_shell ? for_any_shell(script) : script;
  };
  Carried carried;
  carried.program = open_file(file_, O_RDONLY);
  carried.command.argv = {"/bin/sh", "-c", kBoth, "mlenv-node", shown(take_), shown(run_)};
  carried.command.argv.insert(carried.command.argv.end(), words.begin(), words.end());
  carried.command.extra_fds = {{carried.program.get(), kProgramFd}};
  return carried;
}

}  // namespace mlenv::job
