#include "runner/local/runtime.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runner/runtime_variables.hpp"

namespace mlenv {
namespace {

/// keeper::kReportFd stays open for the first program (first_report.hpp).
constexpr const char* kReportWord = "--preserve-fds=1";

fs::path log_of(const Container& container) { return container.bundle / "runtime.log"; }

/// The last error in a log of JSON lines; empty when there is none.
std::string last_error(const fs::path& log) {
  std::string text = read_file_if_exists(log).value_or("");
  std::string message;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const nlohmann::json line = nlohmann::json::parse(rest.substr(0, end), nullptr, false);
    if (line.is_object() && line.value("level", "") == "error") message = line.value("msg", "");
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return message;
}

bool is_in_memory(const fs::path& folder) {
  struct statfs info {};
  return ::statfs(folder.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

/// One path in all hierarchies, as own_groups shows them.
std::vector<fs::path> crun_groups(const fs::path& group) {
  const fs::path top = "/sys/fs/cgroup";
  const fs::path inner = group.relative_path();
  std::error_code error;
  if (fs::exists(top / "cgroup.controllers", error)) return {top / inner};
  std::vector<fs::path> folders;
  for (const fs::path& hierarchy : list_folder(top)) {
    // `cpu` may be a link to `cpu,cpuacct`: of two names, one is enough. What covers version 2 goes
    // with our namespace.
    if (fs::is_symlink(hierarchy, error) || is_in_memory(hierarchy)) continue;
    if (fs::exists(hierarchy / inner, error)) folders.push_back(hierarchy / inner);
  }
  return folders;
}

/// crun reads TYPE:PATH where there is a colon.
std::string log_words(const Runtime& runtime, const fs::path& log) {
  const bool has_colon = log.native().find(':') != std::string::npos;
  return (runtime.is_crun && has_colon ? "file:" : "") + log.string();
}

Command base_command(const Runtime& runtime, const Container& container, const fs::path& log) {
  Command command{Purpose{"oci-runtime"}};
  command.env = runtime_variables(Starts::oci_runtime);
  command.argv = {runtime.program.string(),
                  "--root",
                  (container.bundle / "state").string(),
                  "--log",
                  log_words(runtime, log),
                  "--log-format",
                  "json"};
  if (container.identity != Identity::root) {
    // No cgroup: an ordinary user may make none without systemd's help.
    command.argv.emplace_back(runtime.is_crun ? "--cgroup-manager=disabled" : "--rootless=true");
  }
  return command;
}

}  // namespace

Runtime find_runtime(const std::string& wanted) {
  if (!wanted.empty()) {
    const bool is_path = wanted.find('/') != std::string::npos;
    const std::optional<fs::path> program =
        is_path ? std::optional<fs::path>(wanted) : find_program(wanted);
    if (!program) {
      throw failure("no-runtime", "the container runtime `{}` is not installed", wanted);
    }
    if (::access(program->c_str(), X_OK) != 0) {
      const int error = errno;
      throw failure("no-runtime", "the container runtime `{}` cannot be started", wanted)
          .because(errno_text(error));
    }
    return {*program, program->filename() == "crun"};
  }
  if (const auto runc = find_program("runc")) return {*runc, false};
  if (const auto crun = find_program("crun")) return {*crun, true};
  throw failure("no-runtime", "no container runtime is installed")
      .because("neither `runc` nor `crun` is on PATH")
      .hint("let root run `apt-get install runc`");
}

fs::path messages_file(const Container& container) { return container.bundle / "messages"; }

fs::path pid_file(const Container& container) { return container.bundle / "pid"; }

Command run_command(const Runtime& runtime, const Container& container) {
  Command command = base_command(runtime, container, log_of(container));
  for (const char* word : {"run", "--no-new-keyring", "--bundle"}) command.argv.emplace_back(word);
  command.argv.insert(command.argv.end(),
                      {container.bundle.string(), "--pid-file", pid_file(container).string()});
  if (!container.terminal) command.argv.emplace_back("--detach");
  command.argv.insert(command.argv.end(), {kReportWord, container.id});
  command.stdin_fd = 0;
  if (container.stdout_fd >= 0) command.stdout_fd = container.stdout_fd;
  if (container.stderr_fd >= 0) command.stderr_fd = container.stderr_fd;
  command.own_group = false;
  return command;
}

std::optional<std::vector<fs::path>> cgroup_folders(const Runtime& runtime,
                                                    const Container& container) {
  if (runtime.is_crun) return crun_groups(container.group);
  const auto text = read_file_if_exists(container.bundle / "state" / container.id / "state.json");
  const nlohmann::json state = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!state.is_object() || !state.contains("cgroup_paths")) return std::nullopt;
  std::vector<fs::path> folders;
  for (const auto& [controller, path] : state["cgroup_paths"].items()) {
    if (path.is_string()) folders.emplace_back(path.get<std::string>());
  }
  return folders;
}

Command delete_command(const Runtime& runtime, const Container& container) {
  Command command = base_command(runtime, container, log_of(container));
  command.argv.insert(command.argv.end(), {"delete", "--force", container.id});
  return command;
}

Command exec_command(const Runtime& runtime, const Container& container, const ExecFiles& files) {
  Command command = base_command(runtime, container, files.log);
  command.argv.insert(command.argv.end(), {"exec", "--detach", "--process", files.process.string(),
                                           "--pid-file", files.pid.string()});
  if (!files.console.empty()) {
    command.argv.insert(command.argv.end(), {"--console-socket", files.console.string()});
  }
  command.argv.insert(command.argv.end(), {kReportWord, container.id});
  command.own_group = false;
  return command;
}

std::string runtime_message(const fs::path& log) { return last_error(log); }

Exit explain_exit(const Exit& exit, const Runtime& runtime, const Container& container) {
  const std::string message = last_error(log_of(container));
  if (message.empty()) return exit;
  const auto says = [&](std::string_view words) {
    return message.find(words) != std::string::npos;
  };
  if (says("exec")) {  // the program itself; mounts and the like have no `exec` in their messages
    if (says("exec format error") || says("permission denied")) return {126, false};
    if (says("no such file or directory") || says("not found")) return {127, false};
  }
  const std::string name = runtime.program.filename().string();
  const std::string why =
      container.terminal || container.stderr_fd >= 0 ? message : "its own message is above";
  if (says("cgroups in hybrid mode")) {
    throw failure("no-runtime", "`{}` cannot run containers on this machine", name)
        .because(why)
        .hint("let root run `apt-get install runc`");
  }
  throw failure("run-failed", "`{}` could not start the container", name).because(why);
}

}  // namespace mlenv
