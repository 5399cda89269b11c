#include "builder/build_workshop.hpp"

#include <fcntl.h>
#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_depth.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/zip.hpp"
#include "builder/build.hpp"
#include "builder/lay_over.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::hours kHookDeadline{4};
constexpr std::int64_t kOldestZipTime = 315532800;  ///< 1980: zip files know no earlier time
constexpr std::size_t kShownOutput = 2000;

/// PEP 517's hooks, called in the source's folder. Arguments: hook, backend, backend path as JSON.
constexpr std::string_view kHooks = R"py(
import importlib, json, os, sys
os.umask(0o022)
hook, backend, path = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
sys.path[:0] = [os.path.abspath(one) for one in path]
module, _, name = backend.partition(":")
found = importlib.import_module(module)
for part in filter(None, name.split(".")):
    found = getattr(found, part)
if hook == "requires":
    ask = getattr(found, "get_requires_for_build_wheel", None)
    with open("/srv/requires.json", "w") as out:
        json.dump(list(ask() if ask else []), out)
else:
    found.build_wheel("/srv/out")
)py";

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
    if (key == "Requires-Dist") metadata.requires_dist.push_back(value);
    if (key == "Requires-Python") metadata.requires_python = value;
    if (key == "Provides-Extra") metadata.extras.push_back(value);
  }
  return metadata;
}

}  // namespace

BuildWorkshop::BuildWorkshop(const BuildPlace& place, const Lock& base, std::string shown,
                             std::string subdirectory)
    : place_(place), base_(base), shown_(std::move(shown)), subdirectory_(std::move(subdirectory)) {
  work_.emplace(place.store.scratch());
  make_folders(folder() / "opt");
}

void BuildWorkshop::unpack(const std::function<void(const fs::path& folder)>& lay) {
  for (const char* one : {"srv", "tmp"}) remove_tree(folder() / one);
  for (const char* one : {"srv/out", "tmp"}) make_folders(folder() / one);
  lay(folder() / "srv/src");
  require_project();
  system_ = read_build_system(top(), shown_);
}

/// Without links, which would be followed here: nothing of this machine is a part of it.
void BuildWorkshop::require_project() const {
  const fs::path source = fs::canonical(folder() / "srv/src");
  std::error_code absent;
  const fs::path found = fs::canonical(top(), absent);
  const fs::path wanted = subdirectory_.empty() ? source : source / subdirectory_;
  const auto refuse = [&](std::string why) {
    return failure("bad-source", "`{}` cannot be built", shown_).because(std::move(why));
  };
  if (absent || found != wanted || !fs::is_directory(found)) {
    throw refuse(fmt::format("it has no folder `{}`", subdirectory_));
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
  if (const auto& python = place_.recipe.sources.python) sources.python_url = python->url.text;
  Inputs inputs{place_.store, place_.http, sources, place_.cache, place_.progress};
  BuildOptions options;
  options.jobs = place_.jobs;
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
  if (why.find("unable to detect version") != std::string::npos) {
    return failure("build-failed", "`{}` could not be built", shown_)
        .because(std::move(why))
        .hint(
            "its version comes from git, and a build sees no `.git`: give its setuptools-scm a "
            "`fallback_version`, or write the version down");
  }
  return failure("build-failed", "`{}` could not be built", shown_)
      .because(std::move(why))
      .hint(
          "a compiler or headers that it needs can be added under `system`, as in "
          "`[build-essential, python3-dev]`");
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

void BuildWorkshop::run(const std::string& hook) {
  SandboxCommand command;
  command.root = root_;
  command.read_only_root = true;
  command.argv = {"/opt/venv/bin/python3", "-c",
                  std::string(kHooks),     hook,
                  system_.backend,         nlohmann::json(system_.backend_path).dump()};
  command.env = {"PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin",
                 "HOME=/tmp",
                 "LANG=C.UTF-8",
                 "LC_ALL=C.UTF-8",
                 "TZ=UTC",
                 "PYTHONHASHSEED=0",
                 "PYTHONDONTWRITEBYTECODE=1",
                 "PYTHONNOUSERSITE=1",
                 fmt::format("SOURCE_DATE_EPOCH={}", std::max(base_.epoch, kOldestZipTime))};
  command.folder = subdirectory_.empty() ? "/srv/src" : "/srv/src/" + subdirectory_;
  command.mounts = {{folder() / "opt", "/opt", true},
                    {folder() / "srv", "/srv", false},
                    {folder() / "tmp", "/tmp", false}};
  const fs::path log = folder() / "log";
  const Fd output = open_file(log, O_WRONLY | O_CREAT | O_TRUNC);
  command.stdout_fd = output.get();
  command.stderr_fd = output.get();
  const std::optional<Exit> exit = [&] {
    // Never the recorded kind: that one goes without namespaces where it must, and would leave a
    // package's code the network.
    Sandbox sandbox(command);
    return sandbox.wait(kHookDeadline);
  }();
  if (!exit) throw failed("it did not end within four hours");
  if (exit->code == 0) return;
  const Fd written = open_file(log);
  constexpr std::uint64_t kMostRead = std::uint64_t{64} << 10U;
  const std::uint64_t size = mlenv::file_size(log);
  const std::uint64_t last = std::min(size, kMostRead);
  SliceSource tail{written.get(), size - last, last};
  std::string said(trim(read_all(tail, kMostRead)));
  if (said.size() > kShownOutput) said = "… " + said.substr(said.size() - kShownOutput);
  throw failed(said.empty() ? fmt::format("its build ended with status {}", exit->code) : said);
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
