#include "runner/local/run.hpp"

#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "runner/local/limits.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/signals.hpp"
#include "runner/local/stage_process.hpp"

namespace mlenv {
namespace {

/// The terminal as it was, whatever the runtime leaves behind when it is killed.
class TerminalState {
 public:
  explicit TerminalState(bool engaged) : engaged_(engaged && ::tcgetattr(0, &saved_) == 0) {}
  TerminalState(const TerminalState&) = delete;
  TerminalState& operator=(const TerminalState&) = delete;
  ~TerminalState() {
    if (engaged_) ::tcsetattr(0, TCSADRAIN, &saved_);
  }

 private:
  termios saved_{};
  bool engaged_;
};

/// What the container itself puts there would be made in the person's folder, or not at all.
void refuse_system_folder(std::string_view text, const std::string& target) {
  std::string_view own = target == "/sys" || target == "/dev" ? std::string_view(target) : "";
  for (const std::string_view all : {std::string_view("/proc"), kMachineTarget}) {
    if (is_beneath(target, all)) own = all;
  }
  if (own.empty()) return;
  throw usage_error("bad-mount", "`{}` would cover the container's own `{}`", text, own)
      .hint(fmt::format("choose another target, such as `/host{}`", target));
}

Error no_mount(std::string_view text) {
  return usage_error("bad-mount", "`{}` is not a mount", text)
      .hint("write SOURCE:/TARGET or SOURCE:/TARGET:ro");
}

LocalRun with_absolute_paths(LocalRun run) {
  for (fs::path& tree : run.trees) tree = fs::absolute(tree);
  for (Mount& mount : run.mounts) mount.source = fs::absolute(mount.source);
  if (run.project) run.project = fs::absolute(*run.project);
  run.scratch = fs::absolute(run.scratch);
  if (run.layer) run.layer->folder = fs::absolute(run.layer->folder);
  return run;
}

}  // namespace

Mount Mount::parse(std::string_view text) {
  std::string_view rest = text;
  const bool read_only = rest.ends_with(":ro");
  if (read_only || rest.ends_with(":rw")) {
    rest.remove_suffix(3);
  }
  const std::size_t colon = rest.find(':');
  const std::string_view target = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  if (colon == 0 || target.find(':') != std::string_view::npos) throw no_mount(text);
  return of(text, rest.substr(0, colon), target, read_only);
}

Mount Mount::of(std::string_view text, std::string_view source, std::string_view target,
                bool read_only) {
  if (target.empty() || target.front() != '/') throw no_mount(text);
  Mount mount;
  mount.read_only = read_only;
  mount.target = fs::path(target).lexically_normal().string();
  if (mount.target.size() > 1 && mount.target.back() == '/') mount.target.pop_back();
  if (mount.target == "/") {
    throw usage_error("bad-mount", "`{}` would cover the whole image", text);
  }
  refuse_system_folder(text, mount.target);
  mount.source = fs::absolute(fs::path(source)).lexically_normal();
  std::error_code error;
  if (!fs::exists(mount.source, error)) {
    throw usage_error("bad-mount", "cannot mount `{}`", mount.source.string())
        .because(error ? error.message() : errno_text(ENOENT))
        .hint("make the folder first: what a run writes there then belongs to you");
  }
  return mount;
}

RunOutcome run_local(const LocalRun& run, RunEvents events) {
  // An engine's containers are its own to limit.
  const std::vector<std::string> scope =
      run.engine || run.vm ? std::vector<std::string>{} : scope_for(run.options.limits);
  const TerminalState terminal{run.terminal};
  SignalForwarding forwarding;
  StageProcess stage{with_absolute_paths(run), scope};
  forwarding.to(stage.pid());
  if (events.forked) events.forked();
  return stage.wait(std::move(events));
}

}  // namespace mlenv
