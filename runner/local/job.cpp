#include "runner/local/job.hpp"

#include "base/error.hpp"
#include "base/paths.hpp"
#include "runner/local/job_files.hpp"

namespace mlenv {
namespace {

/// A name without `=` takes the caller's value; the last word on a variable counts.
void set_variables(Variables& environment, const std::vector<std::string>& words,
                   const Variables& caller = {}) {
  for (const std::string& one : words) {
    const std::size_t equals = one.find('=');
    if (equals != std::string::npos) {
      environment.insert_or_assign(one.substr(0, equals), one.substr(equals + 1));
    } else if (const auto value = caller.find(one); value != caller.end()) {
      environment.insert_or_assign(one, value->second);
    }
  }
}

/// Without `.`, `..`, empty parts and a `/` at the end, all of which would hide what lies beneath.
std::string plain_path(const fs::path& path) {
  std::string folder = path.lexically_normal().string();
  if (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

/// Of the image's settings. Whatever starts programs ends a word at a NUL, each in its own way.
void require_words(const std::vector<std::string>& words) {
  for (const std::string& one : words) {
    const std::size_t end = one.find('\0');
    if (end == std::string::npos) continue;
    throw failure("bad-image", "the image's settings have a word with a NUL in it")
        .because("it begins `" + one.substr(0, end) + "`")
        .hint("take another image");
  }
}

/// The image's workdir; empty where it has none that is good for anything.
std::string image_workdir(const LocalRun& run) {
  require_words({run.config.workdir});
  const std::string folder = plain_path(run.config.workdir);
  return folder.empty() || folder.front() != '/' || folder == "/" ? "" : folder;
}

}  // namespace

std::vector<std::string> job_argv(const LocalRun& run) {
  if (!run.argv.empty()) return run.argv;
  std::vector<std::string> argv = run.config.entrypoint;
  argv.insert(argv.end(), run.config.command.begin(), run.config.command.end());
  require_words(argv);
  if (argv.empty()) {
    throw usage_error("no-command", "there is nothing to run: the image names no command")
        .hint("name one: `mlenv run IMAGE -- python train.py`");
  }
  return argv;
}

std::vector<std::string> job_environment(const LocalRun& run,
                                         const std::vector<std::string>& machine,
                                         const Variables& caller, const std::string& home) {
  require_words(run.config.env);
  Variables environment{{"HOME", home}, {"PATH", kDefaultPath}};
  set_variables(environment, machine);
  if (run.terminal) {
    const auto terminal = caller.find("TERM");
    environment["TERM"] = terminal != caller.end() ? terminal->second : "xterm";
  }
  set_variables(environment, run.config.env);
  set_variables(environment, run.devices.env);
  set_variables(environment, run.env, caller);
  // Behind all that was said: what the image or the person brings comes first.
  for (const std::string& folder : run.devices.library_folders) {
    std::string& path = environment["LD_LIBRARY_PATH"];
    path += (path.empty() ? "" : ":") + folder;
  }
  if (!run.first_libraries.empty()) {
    std::string& path = environment["LD_LIBRARY_PATH"];
    path = run.first_libraries + (path.empty() ? "" : ":") + path;
  }
  std::vector<std::string> result;
  result.reserve(environment.size());
  for (const auto& [name, value] : environment) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

std::string project_folder(const LocalRun& run) {
  const std::string folder = image_workdir(run);
  return folder.empty() ? "/workspace" : folder;
}

std::string job_workdir(const LocalRun& run) {
  std::string base = image_workdir(run);
  if (base.empty()) base = run.project ? project_folder(run) : "/";
  if (run.workdir.empty()) return base;
  std::string folder = plain_path(fs::path(base) / run.workdir);
  if (run.workdir.front() != '/' && !is_beneath(folder, base)) {
    throw usage_error("bad-workdir", "`{}` leads out of `{}`, where the command starts",
                      run.workdir, base)
        .hint(fmt::format("write it whole: `-w {}`", folder));
  }
  return folder;
}

std::vector<Mount> job_mounts(const LocalRun& run) {
  std::vector<Mount> mounts;
  if (run.project) mounts.push_back({*run.project, project_folder(run), false});
  mounts.insert(mounts.end(), run.mounts.begin(), run.mounts.end());
  return mounts;
}

}  // namespace mlenv
