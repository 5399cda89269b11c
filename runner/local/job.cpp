#include "runner/local/job.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

void set_variables(Environment& environment, const std::vector<std::string>& assignments) {
  for (const std::string& one : assignments) {
    const std::size_t equals = one.find('=');
    if (equals != std::string::npos) {
      environment.insert_or_assign(one.substr(0, equals), one.substr(equals + 1));
    }
  }
}

/// The image's workdir; empty where it has none that is good for anything.
std::string image_workdir(const LocalRun& run) {
  const std::string& folder = run.config.workdir;
  return folder.empty() || folder.front() != '/' || folder == "/" ? "" : folder;
}

bool is_beneath(const std::string& path, const std::string& folder) {
  return path == folder ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

/// The mount that holds `path`; the deepest one wins.
const Mount* mount_over(const std::vector<Mount>& mounts, const std::string& path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    if (!is_beneath(path, mount.target)) continue;
    if (best == nullptr || mount.target.size() >= best->target.size()) best = &mount;
  }
  return best;
}

using Program = ImageRoot::Program;

Program host_program(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Program::absent;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0
             ? Program::found
             : Program::not_executable;
}

std::optional<std::string> host_head(const fs::path& path, std::size_t limit) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string head(limit, '\0');
  const ssize_t count = fd ? ::read(fd.get(), head.data(), head.size()) : -1;
  if (count < 0) return std::nullopt;
  head.resize(static_cast<std::size_t>(count));
  return head;
}

/// Files as the job will see them: the image's, and over them the mounts.
class View {
 public:
  View(const Bundle& bundle, const ImageRoot& image) : bundle_(bundle), image_(image) {}

  Program program(const std::string& path) const {
    if (const auto host = host_path(path)) return host_program(*host);
    return is_hidden(path) ? Program::found : image_.program(path);
  }
  /// The first bytes; nullopt where they cannot be read from here.
  std::optional<std::string> head(const std::string& path) const {
    constexpr std::size_t limit = 256;  // what the kernel reads (BINPRM_BUF_SIZE)
    if (const auto host = host_path(path)) return host_head(*host, limit);
    return is_hidden(path) ? std::nullopt : image_.read(path, limit);
  }
  std::string absolute(const std::string& path) const {
    return (fs::path(bundle_.workdir) / path).lexically_normal().string();
  }

 private:
  std::optional<fs::path> host_path(const std::string& path) const {
    const Mount* mount = mount_over(bundle_.mounts, path);
    if (mount == nullptr) return std::nullopt;
    const fs::path below = fs::path(path).lexically_relative(mount->target);
    return below == "." ? mount->source : mount->source / below;
  }
  /// Beneath a default mount, which is not there yet.
  bool is_hidden(const std::string& path) const {
    return std::any_of(hidden_.begin(), hidden_.end(),
                       [&](const std::string& target) { return is_beneath(path, target); });
  }
  const Bundle& bundle_;
  const ImageRoot& image_;
  std::vector<std::string> hidden_ = default_mount_targets();
};

std::string search_path(const Bundle& bundle) {
  for (const std::string& variable : bundle.env) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return kDefaultPath;
}

struct Found {
  Program program = Program::absent;
  std::string path;
};

Found search(const std::string& name, const Bundle& bundle, const View& view) {
  Found result;
  const std::string path = search_path(bundle);
  std::string_view rest = path;
  while (true) {
    const std::size_t end = rest.find(':');
    const std::string candidate = view.absolute(std::string(rest.substr(0, end)) + "/" + name);
    const Program program = view.program(candidate);
    if (program == Program::found) return {program, candidate};
    if (program == Program::not_executable) result = {program, candidate};
    if (end == std::string_view::npos) return result;
    rest.remove_prefix(end + 1);
  }
}

/// What execve(2) would say of the file's first bytes. A foreign format may still have a handler
/// (binfmt_misc): only what is text without `#!` is refused.
std::optional<CannotRun> bad_format(const std::string& name, const std::string& path,
                                    const View& view) {
  const std::optional<std::string> head = view.head(path);
  if (!head || head->starts_with("\x7f"
                                 "ELF"))
    return std::nullopt;
  if (!head->starts_with("#!")) {
    const bool is_binary = head->find('\0') != std::string::npos;
    if (is_binary) return std::nullopt;
    return CannotRun{126, fmt::format("cannot run `{}`: it is no program, and as a script it lacks "
                                      "a first line such as `#!/bin/sh`",
                                      name)};
  }
  const std::size_t start = head->find_first_not_of(" \t", 2);
  if (start == std::string::npos) return std::nullopt;
  const std::string interpreter =
      head->substr(start, head->find_first_of(std::string_view(" \t\r\n\0", 5), start) - start);
  if (view.program(view.absolute(interpreter)) != Program::absent) return std::nullopt;
  return CannotRun{
      127, fmt::format("cannot run `{}`: its interpreter `{}` is not there", name, interpreter)};
}

}  // namespace

std::vector<std::string> job_argv(const LocalRun& run) {
  if (!run.argv.empty()) return run.argv;
  std::vector<std::string> argv = run.config.entrypoint;
  argv.insert(argv.end(), run.config.command.begin(), run.config.command.end());
  if (argv.empty()) {
    throw usage_error("no-command", "there is nothing to run: the image names no command")
        .hint("name one: `mlenv run IMAGE -- python train.py`");
  }
  return argv;
}

std::vector<std::string> job_environment(const LocalRun& run,
                                         const std::vector<std::string>& machine,
                                         const Environment& caller, const std::string& home) {
  Environment environment{{"HOME", home}, {"PATH", kDefaultPath}};
  set_variables(environment, machine);
  if (run.terminal) {
    const auto terminal = caller.find("TERM");
    environment["TERM"] = terminal != caller.end() ? terminal->second : "xterm";
  }
  set_variables(environment, run.config.env);
  set_variables(environment, run.env);
  for (const std::string& name : run.env) {
    const auto value = caller.find(name);
    if (value != caller.end()) environment[name] = value->second;
  }
  std::vector<std::string> result;
  result.reserve(environment.size());
  for (const auto& [name, value] : environment) result.push_back(name + "=" + value);
  return result;
}

std::string project_folder(const LocalRun& run) {
  const std::string folder = image_workdir(run);
  return folder.empty() ? "/workspace" : folder;
}

std::string job_workdir(const LocalRun& run) {
  std::string base = image_workdir(run);
  if (base.empty()) base = run.project ? project_folder(run) : "/";
  return run.workdir.empty() ? base : (fs::path(base) / run.workdir).lexically_normal().string();
}

std::vector<Mount> job_mounts(const LocalRun& run) {
  std::vector<Mount> mounts;
  if (run.project) mounts.push_back({*run.project, project_folder(run), false});
  mounts.insert(mounts.end(), run.mounts.begin(), run.mounts.end());
  return mounts;
}

std::optional<CannotRun> cannot_run(const Bundle& bundle, const ImageRoot& image) {
  const std::string& name = bundle.argv.front();
  const View view{bundle, image};
  const bool is_path = name.find('/') != std::string::npos;
  const std::string path = view.absolute(name);
  const Found found = is_path ? Found{view.program(path), path} : search(name, bundle, view);
  if (found.program == Program::found) return bad_format(name, found.path, view);
  if (found.program == Program::not_executable) {
    return CannotRun{126, fmt::format("cannot run `{}`: it is not an executable file", name)};
  }
  if (is_path) return CannotRun{127, fmt::format("cannot run `{}`: no such file", name)};
  return CannotRun{127, fmt::format("cannot run `{}`: not found on the image's PATH ({})", name,
                                    search_path(bundle))};
}

}  // namespace mlenv
