#include "runner/engine/engine.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/local/limit_place.hpp"
#include "runner/runtime_variables.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

Error no_daemon(const std::string& words) {
  if (says(words, "permission denied")) {
    return failure("engine-denied", "this user may not use Docker")
        .because(words)
        .hint(
            "let root add you to the group `docker` (which makes you as good as root), or leave "
            "`--runtime docker` out: containers then need no daemon");
  }
  return failure("engine-down", "Docker's daemon does not answer")
      .because(words)
      .hint(
          "let root run `systemctl start docker`; where it listens elsewhere, DOCKER_HOST or "
          "`docker context use` says so; or leave `--runtime docker` out");
}

std::string short_error(std::string_view text) {
  return std::string(trim(trim(text).substr(0, trim(text).find('\n'))));
}

bool says_true(const json& info, const char* name) {
  const auto found = info.find(name);
  return found != info.end() && found->is_boolean() && found->get<bool>();
}

void read_docker(const json& info, const std::string& error, ContainerEngine& engine) {
  if (info.contains("host") && info.contains("store")) {
    throw failure("no-engine", "`docker` is podman under another name here")
        .hint("write `--runtime podman`");
  }
  engine.version = text_of(info, "ServerVersion");
  if (engine.version.empty()) {
    // The client answers with what it knows of itself, and of the daemon with its errors.
    const json errors = info.value("ServerErrors", json::array());
    const bool has_words = errors.is_array() && !errors.empty() && errors[0].is_string();
    throw no_daemon(has_words ? errors[0].get<std::string>() : short_error(error));
  }
  for (const json& option : info.value("SecurityOptions", json::array())) {
    if (option.is_string() && says(option.get<std::string>(), "name=rootless")) {
      engine.rootless = true;
    }
  }
  if (says_true(info, "MemoryLimit")) engine.controllers.emplace_back("memory");
  if (says_true(info, "CpuCfsQuota")) engine.controllers.emplace_back("cpu");
  if (says_true(info, "CPUSet")) engine.controllers.emplace_back("cpuset");
  if (says_true(info, "PidsLimit")) engine.controllers.emplace_back("pids");
  engine.swap_limit = says_true(info, "SwapLimit");
}

/// As crun finds it out (its libcrun_get_cgroup_mode), which then does nothing.
bool has_both_group_versions() {
  const auto is_unified = [](const char* folder) {
    struct statfs system {};
    return ::statfs(folder, &system) == 0 && system.f_type == CGROUP2_SUPER_MAGIC;
  };
  return !is_unified("/sys/fs/cgroup") && is_unified("/sys/fs/cgroup/unified");
}

/// Podman's own list, and PATH, which on Debian has no `sbin` for users.
std::optional<fs::path> find_runc() {
  if (auto found = find_program("runc")) return found;
  for (const char* path : {"/usr/local/sbin/runc", "/usr/sbin/runc", "/sbin/runc"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return std::nullopt;
}

/// Podman's choice, unless that cannot work here.
void choose_oci_runtime(const std::string& own, ContainerEngine& engine) {
  engine.keeps_groups = own == "crun";
  if (own != "crun" || !has_both_group_versions()) return;
  const std::optional<fs::path> runc = find_runc();
  if (!runc) {
    throw failure("no-runtime", "podman's runtime crun makes no containers on this machine")
        .because("control groups of versions 1 and 2 are both in use here, which crun refuses")
        .hint(
            "let root run `apt-get install runc`, which mlenv then has podman use; or leave "
            "`--runtime podman` out");
  }
  engine.oci_runtime = runc->string();
  engine.keeps_groups = false;
}

void read_podman(const json& info, const std::string& error, ContainerEngine& engine) {
  if (!info.contains("version") || !info.contains("host") || !info.at("host").is_object()) {
    throw failure("engine-down", "podman does not work here").because(short_error(error));
  }
  const json& host = info.at("host");
  if (says_true(host, "serviceIsRemote")) {
    throw failure("engine-down", "podman runs containers on another machine here")
        .because("this machine's folders cannot be shown there")
        .hint("unset CONTAINER_HOST, or leave `--runtime podman` out");
  }
  engine.version = text_of(info.at("version"), "Version");
  engine.rootless = says_true(host.value("security", json::object()), "rootless");
  choose_oci_runtime(text_of(host.value("ociRuntime", json::object()), "name"), engine);
  const bool unified = text_of(host, "cgroupVersion") == "v2";
  if (!unified && !engine.rootless) engine.controllers = {"memory", "cpu", "cpuset", "pids"};
  if (unified) {
    for (const json& one : host.value("cgroupControllers", json::array())) {
      if (one.is_string()) engine.controllers.push_back(one.get<std::string>());
    }
  }
  engine.swap_limit = !engine.controllers.empty() &&
                      (unified || fs::exists("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"));
}

}  // namespace

std::string ContainerEngine::title() const {
  std::string text = name + " " + version;
  if (!oci_runtime.empty()) text += " with " + fs::path(oci_runtime).filename().string();
  return text;
}

Captured ask(const ContainerEngine& engine, std::vector<std::string> words,
             std::chrono::milliseconds deadline, const fs::path& folder) {
  Command command{Purpose{"engine-question"}};
  command.env = runtime_variables(Starts::engine);
  command.argv = std::move(words);
  command.argv.insert(command.argv.begin(), engine.program);
  command.folder = folder;
  return run_captured(std::move(command), deadline);
}

namespace {

/// What it says of itself. A daemon that hangs is one that does not answer.
Captured told_of(const ContainerEngine& engine) {
  try {
    return ask(engine, {"info", "--format", "{{json .}}"}, kEngineAnswer);
  } catch (const Error& error) {
    if (error.code() != "timeout") throw;
    if (!engine.is_podman()) throw no_daemon(error.what());
    throw failure("engine-down", "podman does not work here").because(error.what());
  }
}

}  // namespace

bool is_engine(std::string_view runtime) { return runtime == "docker" || runtime == "podman"; }

ContainerEngine find_engine(const std::string& name) {
  const std::optional<fs::path> program = find_program(name);
  if (!program) {
    throw failure("no-engine", "`{}` is not installed", name)
        .hint(fmt::format("let root run `apt-get install {}`, or leave `--runtime {}` out: "
                          "containers then need neither it nor a daemon",
                          name == "docker" ? "docker.io" : name, name));
  }
  ContainerEngine engine;
  engine.name = name;
  engine.program = program->string();
  const Captured answer = told_of(engine);
  const json info = json::parse(answer.out, nullptr, false);
  const json known = info.is_object() ? info : json::object();
  engine.is_podman() ? read_podman(known, answer.err, engine)
                     : read_docker(known, answer.err, engine);
  return engine;
}

void check_limits(const ContainerEngine& engine, const JobLimits& limits) {
  for (const std::string& controller : controllers_for(limits)) {
    const auto& all = engine.controllers;
    if (std::find(all.begin(), all.end(), controller) != all.end()) continue;
    throw failure("no-limit", "{} cannot set this limit here", engine.name)
        .because(
            engine.rootless
                ? fmt::format("as an ordinary user it has no control group with `{}`", controller)
                : fmt::format("it has no control group with `{}`", controller))
        .hint("run as root, or where control groups of version 2 hand it down to users");
  }
}

}  // namespace mlenv
