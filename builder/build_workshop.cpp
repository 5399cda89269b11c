#include "builder/build_workshop.hpp"

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_depth.hpp"
#include "base/last_bytes.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/zip.hpp"
#include "builder/build.hpp"
#include "builder/build_hint.hpp"
#include "builder/build_output.hpp"
#include "builder/image_config.hpp"
#include "builder/lay_over.hpp"
#include "builder/run/lent_tree.hpp"
#include "recipes/logins.hpp"
#include "recipes/mended_requirement.hpp"
#include "recipes/resolve/cuda.hpp"
#include "recipes/resolve/python_build.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::hours kHookDeadline{4};
constexpr std::int64_t kOldestZipTime = 315532800;  ///< 1980: zip files know no earlier time
constexpr std::size_t kShownOutput = 2000;

/// PEP 517's hooks, called in the source's folder. Arguments: hook, backend, and as JSON the
/// backend's path and settings.
constexpr std::string_view kHooks = R"py(
import importlib, json, os, sys
os.umask(0o022)
hook, backend, path, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
more = [settings] if settings else []
sys.path[:0] = [os.path.abspath(one) for one in path]
module, _, name = backend.partition(":")
found = importlib.import_module(module)
for part in filter(None, name.split(".")):
    found = getattr(found, part)
if hook == "requires":
    ask = getattr(found, "get_requires_for_build_wheel", None)
    with open("/srv/requires.json", "w") as out:
        json.dump(list(ask(*more) if ask else []), out)
else:
    found.build_wheel("/srv/out", *more)
)py";

constexpr std::string_view kPath = "/opt/venv/bin:/usr/local/bin:/usr/bin:/bin";

/// Of all builds.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kVariables = {
    {{"PATH", kPath},
     {"HOME", "/tmp"},
     {"LANG", "C.UTF-8"},
     {"LC_ALL", "C.UTF-8"},
     {"TZ", "UTC"},
     {"PYTHONHASHSEED", "0"},
     {"PYTHONDONTWRITEBYTECODE", "1"},
     {"PYTHONNOUSERSITE", "1"}}};
/// Installers that a build calls ask nobody instead of trying again and again.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWithoutNetwork = {
    {{"PIP_NO_INDEX", "1"}, {"PIP_DISABLE_PIP_VERSION_CHECK", "1"}, {"UV_OFFLINE", "1"}}};

/// Header lines of a METADATA file (core metadata), up to its first empty line.
ReleaseMetadata parse_metadata(std::string_view text) {
  ReleaseMetadata metadata;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string value(trim(line.substr(colon + 1)));
    const std::string_view key = line.substr(0, colon);
    if (key == "Requires-Dist") metadata.requires_dist.push_back(mended_requirement(value));
    if (key == "Requires-Python") metadata.requires_python = value;
    if (key == "Provides-Extra") metadata.extras.push_back(value);
  }
  return metadata;
}

}  // namespace

BuildWorkshop::BuildWorkshop(const BuildPlace& place, const Lock& base, BuildSubject subject)
    : place_(place), base_(base), subject_(std::move(subject)) {
  work_.emplace(place.store.scratch());
  make_folders(folder() / "opt");
}

std::string BuildWorkshop::hooks() {
  std::string text{kHooks};
  for (const auto& [name, value] : kVariables) text += fmt::format("{}={}\n", name, value);
  for (const auto& [name, value] : kWithoutNetwork) text += fmt::format("{}={}\n", name, value);
  return text;
}

void BuildWorkshop::unpack(const std::function<void(const fs::path& folder)>& lay) {
  for (const char* one : {"srv", "tmp"}) remove_tree(folder() / one);
  for (const char* one : {"srv/out", "tmp"}) make_folders(folder() / one);
  lay(folder() / "srv/src");
  require_project();
  system_ = read_build_system(top(), subject_.shown);
}

/// Without links, which would be followed here: nothing of this machine is a part of it.
void BuildWorkshop::require_project() const {
  const fs::path source = fs::canonical(folder() / "srv/src");
  std::error_code absent;
  const fs::path found = fs::canonical(top(), absent);
  const fs::path wanted = subject_.subdirectory.empty() ? source : source / subject_.subdirectory;
  const auto refuse = [&](std::string why) {
    return failure("bad-source", "`{}` cannot be built", subject_.shown).because(std::move(why));
  };
  if (absent || found != wanted || !fs::is_directory(found)) {
    throw refuse(fmt::format("it has no folder `{}`", subject_.subdirectory));
  }
  bool project = false;
  for (const char* name : {"pyproject.toml", "setup.py", "setup.cfg"}) {
    const fs::file_status status = fs::symlink_status(found / name);
    if (fs::is_symlink(status)) throw refuse(fmt::format("its `{}` is a link", name));
    project = project || fs::is_regular_file(status);
  }
  if (project) return;
  throw refuse("it is no Python project: there is neither a pyproject.toml nor a setup.py")
      .hint("name the folder that holds one; in a repository or archive with `#subdirectory=`");
}

void BuildWorkshop::equip(const std::vector<LockedWheel>& wheels,
                          std::map<std::string, std::string> urls) {
  Lock lock = environment(wheels);
  InputSources sources;
  sources.vendor = place_.vendor;
  sources.snapshots = place_.snapshots;
  sources.wheel_places = [&](const std::vector<LockedWheel>& missing, bool anew) {
    if (!anew && !urls.empty()) return WheelPlaces{urls, {}};
    const auto ask = anew ? wheel_places_anew : wheel_places;
    return ask(place_.recipe, lock, missing, place_.cache, place_.progress);
  };
  // Where the base is at hand already, the machine's sources do not matter.
  sources.deb_urls = [&](const LockedDeb& deb) {
    return deb_urls(deb, debian_sources(place_.recipe));
  };
  sources.python_url = interpreter_url(place_.recipe, lock, place_.cache);
  Inputs inputs{place_.store, place_.http, sources, place_.cache, place_.progress};
  BuildOptions options;
  options.jobs = place_.jobs;
  tools_.clear();
  for (const LockedWheel& wheel : wheels) tools_.push_back(wheel.name);
  cuda_home_ = cuda_home_of(wheels);
  const BuildResult result = mlenv::build(lock, place_.store, inputs, options, place_.progress);
  const std::vector<Layer>& layers = result.image.layers;
  root_ = place_.store.find_tree(layers.front().diff_id).value();
  remove_tree(folder() / "opt");
  make_folders(folder() / "opt");
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const fs::path opt = place_.store.find_tree(layers[i].diff_id).value() / "opt";
    if (!fs::exists(opt)) continue;
    lay_over(opt, folder() / "opt");
  }
}

std::vector<std::string> BuildWorkshop::more_requirements() {
  run("requires");
  const fs::path answer = folder() / "srv/requires.json";
  require_plain(answer);
  const std::string text = read_small_file(answer, size_limit::kPyproject);
  if (is_too_deep(text) || json_values(text) > size_limit::kImageValues) {
    throw failed("its requirements are no list");
  }
  const auto found = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!found.is_array()) throw failed("its requirements are no list");
  std::vector<std::string> texts;
  for (const auto& one : found) {
    if (!one.is_string()) throw failed("a requirement of its build is no text");
    texts.push_back(one.get<std::string>());
  }
  return texts;
}

fs::path BuildWorkshop::wheel() {
  run("wheel");
  std::vector<fs::path> found;
  if (!fs::is_directory(fs::symlink_status(folder() / "srv/out"))) {
    throw failed("it left no folder of wheels");
  }
  for (const fs::path& one : list_folder(folder() / "srv/out")) {
    if (one.extension() == ".whl") found.push_back(one);
  }
  if (found.size() != 1) throw failed(fmt::format("it made {} wheels", found.size()));
  require_plain(found.front());
  return found.front();
}

Error BuildWorkshop::failed(std::string why) const {
  return failure("build-failed", "`{}` could not be built", subject_.shown).because(std::move(why));
}

/// With what its output tells of the reason.
Error BuildWorkshop::failed_saying(std::string_view said) const {
  FailedBuild build;
  build.package = subject_.name;
  build.said = said;
  build.python = base_.python_minor();
  build.image_env = place_.recipe.env;
  for (const Placed& one : place_.recipe.build_constraints) build.constraints.push_back(one.text);
  build.tools = tools_;
  build.network = subject_.settings.network;
  build.compiler = std::any_of(base_.debs.begin(), base_.debs.end(),
                               [](const LockedDeb& deb) { return deb.name == "gcc"; });
  const auto cuda = locked_cuda(base_.wheels);
  if (const auto* found = std::get_if<std::optional<LockedCuda>>(&cuda); found && *found) {
    build.cuda = (*found)->release;
  }
  std::string hint = build_hint(build);
  Remedy remedy = remedy_of_build_hint(hint);
  return failed(shown_output(said, kShownOutput)).hint(std::move(hint)).remedy(std::move(remedy));
}

/// What a package's code leaves is read on this machine: a link of it would be followed here.
void BuildWorkshop::require_plain(const fs::path& path) const {
  if (fs::is_regular_file(fs::symlink_status(path))) return;
  throw failed(fmt::format("`{}` is no file", path.filename().string()));
}

Lock BuildWorkshop::environment(const std::vector<LockedWheel>& wheels) const {
  Lock lock;
  lock.platform = base_.platform;
  lock.epoch = base_.epoch;
  lock.distribution = base_.distribution;
  lock.suite = base_.suite;
  lock.python = base_.python;
  lock.interpreter = base_.interpreter;
  lock.request.interpreter = base_.request.interpreter;
  lock.debs = base_.debs;
  lock.wheels = wheels;
  lock.settings.name = "build";
  lock.settings.workdir = "/";
  lock.settings.bytecode = false;
  return lock;
}

/// `machine`: what it lends a build with the network. The recipe's own go before all others.
std::vector<std::string> BuildWorkshop::variables(const std::vector<std::string>& machine) const {
  std::map<std::string, std::string> all{kVariables.begin(), kVariables.end()};
  all["SOURCE_DATE_EPOCH"] = std::to_string(std::max(base_.epoch, kOldestZipTime));
  if (!cuda_home_.empty()) {
    all["CUDA_HOME"] = cuda_home_;
    all["LIBRARY_PATH"] = cuda_home_ + "/lib";
    all["PATH"] = fmt::format("{}:{}/bin", kPath, cuda_home_);
  }
  if (!subject_.settings.network) all.insert(kWithoutNetwork.begin(), kWithoutNetwork.end());
  for (const std::string& text : machine) {
    const std::size_t equals = text.find('=');
    all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : subject_.settings.env) all[name] = value;
  std::vector<std::string> env;
  for (const auto& [name, value] : all) env.push_back(fmt::format("{}={}", name, value));
  return env;
}

/// Of a variable that a package's code has no business with: indexes are the machine's, logins the
/// person's.
bool holds_login(const std::string& variable) {
  const std::string name = variable.substr(0, variable.find('='));
  const bool named =
      name.starts_with("UV_INDEX_") && (name.ends_with("_PASSWORD") || name.ends_with("_USERNAME"));
  return named || !find_logins(variable).empty();
}

namespace {

/// Until the sandbox and its output end, or the time is up; `said` is the last of that output.
std::optional<Exit> run_saying(SandboxCommand& command, std::string& said) {
  constexpr std::size_t kKept = std::size_t{64} << 10U;
  Pipe pipe = make_pipe();
  command.stdout_fd = pipe.write_end.get();
  command.stderr_fd = pipe.write_end.get();
  Sandbox sandbox(command);
  const auto end = std::chrono::steady_clock::now() + kHookDeadline;
  pipe.write_end.reset();
  LastBytes last{kKept};
  drain(pipe.read_end, end, [&](std::string_view part) { last.append(part); });
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  const std::optional<Exit> exit = sandbox.wait(std::max(left, std::chrono::milliseconds{0}));
  said = trim(last.release());
  return exit;
}

}  // namespace

/// With the network: what the machine lends lies on top of the base while it runs.
std::optional<Exit> BuildWorkshop::run_to_end(SandboxCommand& command, std::string& said) {
  // Never the recorded kind: that one goes without namespaces where it must, and would leave a
  // package's code the network.
  if (!subject_.settings.network || !place_.lend) {
    command.root = root_;
    command.read_only_root = true;
    command.env = variables({});
    return run_saying(command, said);
  }
  const TemporaryFolder scratch(folder());
  const fs::path machine = scratch.path() / "machine";
  make_folders(machine);
  LayerStack below({root_});
  LentTree lent(scratch.path() / "lent", below);
  std::vector<std::string> lent_variables;
  lent.lend(scratch.path() / "view",
            [&](const fs::path& view) { lent_variables = place_.lend(view, machine); });
  lent.finish();
  std::erase_if(lent_variables, holds_login);
  command.network = true;
  command.env = variables(lent_variables);
  command.overlay = lent.stacked(scratch.path());
  command.mounts.push_back({machine, place_.lent_at, true});
  return run_saying(command, said);
}

void BuildWorkshop::run(const std::string& hook) {
  SandboxCommand command;
  command.argv = {"/opt/venv/bin/python3",
                  "-c",
                  std::string(kHooks),
                  hook,
                  system_.backend,
                  nlohmann::json(system_.backend_path).dump(),
                  config_settings_json(subject_.settings)};
  command.folder = subject_.subdirectory.empty() ? "/srv/src" : "/srv/src/" + subject_.subdirectory;
  command.mounts = {{folder() / "opt", "/opt", true},
                    {folder() / "srv", "/srv", false},
                    {folder() / "tmp", "/tmp", false}};
  std::string said;
  const std::optional<Exit> exit = run_to_end(command, said);
  if (!exit) throw failed("it did not end within four hours");
  if (exit->code == 0) return;
  if (said.empty()) throw failed(fmt::format("its build ended with status {}", exit->code));
  throw failed_saying(said);
}

ReleaseMetadata read_wheel_metadata(const fs::path& wheel) {
  const Fd file = open_file(wheel);
  for (const ZipMember& member : read_zip_directory(file.get())) {
    const std::size_t slash = member.name.find('/');
    if (slash == std::string::npos || member.name.substr(slash) != "/METADATA") continue;
    if (member.name.substr(0, slash).ends_with(".dist-info")) {
      return parse_metadata(read_zip_member(file.get(), member));
    }
  }
  throw failure("build-failed", "a wheel was built that says nothing of itself");
}

}  // namespace mlenv
