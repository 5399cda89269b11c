#include "runner/local/job.hpp"

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

ImageRoot::Program host_program(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return ImageRoot::Program::absent;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0
             ? ImageRoot::Program::found
             : ImageRoot::Program::not_executable;
}

ImageRoot::Program program_at(const std::string& path, const Bundle& bundle,
                              const ImageRoot& image) {
  if (const Mount* mount = mount_over(bundle.mounts, path)) {
    const fs::path below = fs::path(path).lexically_relative(mount->target);
    return host_program(below == "." ? mount->source : mount->source / below);
  }
  const std::vector<std::string> hidden = default_mount_targets();
  const bool unseen = std::any_of(hidden.begin(), hidden.end(), [&](const std::string& target) {
    return is_beneath(path, target);
  });
  return unseen ? ImageRoot::Program::found : image.program(path);
}

std::string search_path(const Bundle& bundle) {
  for (const std::string& variable : bundle.env) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return kDefaultPath;
}

ImageRoot::Program search(const std::string& name, const Bundle& bundle, const ImageRoot& image) {
  ImageRoot::Program result = ImageRoot::Program::absent;
  std::string_view rest;
  const std::string path = search_path(bundle);
  rest = path;
  while (true) {
    const std::size_t end = rest.find(':');
    const fs::path folder = fs::path(bundle.workdir) / rest.substr(0, end);
    const auto found = program_at((folder / name).lexically_normal().string(), bundle, image);
    if (found == ImageRoot::Program::found) return found;
    if (found == ImageRoot::Program::not_executable) result = found;
    if (end == std::string_view::npos) return result;
    rest.remove_prefix(end + 1);
  }
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
  const bool is_path = name.find('/') != std::string::npos;
  const auto program =
      is_path
          ? program_at((fs::path(bundle.workdir) / name).lexically_normal().string(), bundle, image)
          : search(name, bundle, image);
  if (program == ImageRoot::Program::found) return std::nullopt;
  if (program == ImageRoot::Program::not_executable) {
    return CannotRun{126, fmt::format("cannot run `{}`: it is not an executable file", name)};
  }
  if (is_path) return CannotRun{127, fmt::format("cannot run `{}`: no such file", name)};
  return CannotRun{127, fmt::format("cannot run `{}`: not found on the image's PATH ({})", name,
                                    search_path(bundle))};
}

}  // namespace mlenv
