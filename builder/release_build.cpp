#include "builder/release_build.hpp"

#include <fcntl.h>
#include <algorithm>
#include <chrono>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/zip.hpp"
#include "builder/build.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::hours kDeadline{4};
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

ReleaseMetadata read_metadata(const fs::path& wheel) {
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

}  // namespace

/// The folders of one build, and the environment that it runs in.
class ReleaseBuilder::Workshop {
 public:
  Workshop(BuildPlace& place, const Lock& base, std::string name, std::string file)
      : place_(place), base_(base), name_(std::move(name)), file_(std::move(file)) {
    work_.emplace(place.store.scratch());
    make_folders(folder() / "opt");
  }

  /// Afresh: whatever a hook did to the source, the next one does not see it.
  void unpack(const fs::path& archive) {
    for (const char* one : {"srv", "tmp"}) remove_tree(folder() / one);
    for (const char* one : {"srv/out", "tmp"}) make_folders(folder() / one);
    unpack_source(archive, file_, folder() / "srv/src");
    system_ = read_build_system(folder() / "srv/src", file_);
  }
  const BuildSystem& build_system() const { return system_; }

  /// Makes an environment of these wheels the one that hooks run in.
  void equip(const std::vector<LockedWheel>& wheels, std::map<std::string, std::string> urls) {
    Lock lock = environment(wheels);
    InputSources sources;
    sources.wheel_urls = [&](const std::vector<LockedWheel>& missing, bool anew) {
      if (!anew && !urls.empty()) return urls;
      const auto ask = anew ? wheel_urls_anew : wheel_urls;
      return ask(place_.recipe, lock, missing, place_.cache, place_.progress);
    };
    const std::vector<DebianSource> debian = debian_sources(place_.recipe);
    sources.deb_urls = [&](const LockedDeb& deb) { return deb_urls(deb, debian); };
    if (const auto& python = place_.recipe.sources.python) sources.python_url = python->url.text;
    Inputs inputs{place_.store, place_.http, sources, place_.cache, place_.progress};
    BuildOptions options;
    options.jobs = place_.jobs;
    const BuildResult result = mlenv::build(lock, place_.store, inputs, options, place_.progress);
    const std::vector<Layer>& layers = result.image.layers;
    root_ = place_.store.find_tree(layers.front().diff_id).value();
    remove_tree(folder() / "opt");
    for (std::size_t i = 1; i < layers.size(); ++i) {
      const fs::path opt = place_.store.find_tree(layers[i].diff_id).value() / "opt";
      if (!fs::exists(opt)) continue;
      // Two wheels may hold the same file.
      fs::copy(opt, folder() / "opt",
               fs::copy_options::recursive | fs::copy_options::copy_symlinks |
                   fs::copy_options::overwrite_existing);
    }
  }

  std::vector<std::string> more_requirements() {
    run("requires");
    const fs::path answer = folder() / "srv/requires.json";
    require_plain(answer);
    const auto found =
        nlohmann::json::parse(read_file(answer), nullptr, /*allow_exceptions=*/false);
    if (!found.is_array()) throw failed("its requirements are no list");
    std::vector<std::string> texts;
    for (const auto& one : found) {
      if (!one.is_string()) throw failed("a requirement of its build is no text");
      texts.push_back(one.get<std::string>());
    }
    return texts;
  }

  /// The wheel's path.
  fs::path wheel() {
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

  Error failed(std::string why) const {
    return failure("build-failed", "`{}` could not be built", file_)
        .because(std::move(why))
        .hint(
            "a compiler or headers that it needs can be added under `system`, as in "
            "`[build-essential, python3-dev]`");
  }

 private:
  const fs::path& folder() const { return work_->path(); }

  /// What a package's code leaves is read on this machine: a link of it would be followed here.
  void require_plain(const fs::path& path) const {
    if (fs::is_regular_file(fs::symlink_status(path))) return;
    throw failed(fmt::format("`{}` is no file", path.filename().string()));
  }

  Lock environment(const std::vector<LockedWheel>& wheels) const {
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

  void run(const std::string& hook) {
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
    command.folder = "/srv/src";
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
      return sandbox.wait(kDeadline);
    }();
    if (!exit) throw failed("it did not end within four hours");
    if (exit->code == 0) return;
    std::string said(trim(read_file(log)));
    if (said.size() > kShownOutput) said = "… " + said.substr(said.size() - kShownOutput);
    throw failed(said.empty() ? fmt::format("its build ended with status {}", exit->code) : said);
  }

  BuildPlace& place_;
  const Lock& base_;
  std::string name_;
  std::string file_;
  std::optional<TemporaryFolder> work_;
  fs::path root_;
  BuildSystem system_;
};

namespace {

/// Into the store; what of it a lock holds.
LockedWheel keep(Store& store, const fs::path& path, const SourceRelease& release,
                 const Lock& base) {
  const std::string file = path.filename().string();
  const auto name = parse_wheel_name(file);
  const bool same = name && normalise_wheel_name(name->name) == release.name &&
                    is_same_version(name->version, release.version);
  const WheelTags tags(base.python_minor(), glibc_version(base),
                       base.platform.substr(base.platform.find('/') + 1));
  if (!same || !tags.rank(file)) {
    throw failure("build-failed", "`{}` was built, which is no wheel of `{}` {} for the image",
                  file, release.name, release.version);
  }
  const std::string bytes = read_file(path);
  const Digest digest = store.put(bytes);
  return {release.name, release.version, file, bytes.size(), digest, false};
}

Recipe requirements_of_build(const Recipe& recipe, const std::vector<std::string>& requirements) {
  Recipe wanted;
  wanted.path = "[build-system]";
  wanted.sources = recipe.sources;
  for (const std::string& one : requirements) wanted.packages.push_back({one, 1, 1});
  return wanted;
}

Conflict without_tools(const SourceRelease& release, Conflict why) {
  Conflict conflict;
  conflict.headline = fmt::format("`{}` {} has no wheel, and what its build needs cannot be had",
                                  release.name, release.version);
  conflict.facts = std::move(why.facts);
  conflict.facts.insert(conflict.facts.begin(), why.headline);
  conflict.hint = fmt::format("leave `{}` out, or choose another version of it", release.name);
  return conflict;
}

}  // namespace

fs::path ReleaseBuilder::fetch(const SourceRelease& release) const {
  fs::path path = place_.cache / "sources" / release.digest.hex();
  if (const auto text = read_file_if_exists(path)) {
    if (Digest::of(*text) == release.digest) return path;
  }
  make_folders(path.parent_path());
  AtomicFile file{path};
  constexpr std::string_view kLocal = "file://";
  if (release.url.starts_with(kLocal)) {
    const std::string text = read_file(release.url.substr(kLocal.size()));
    if (Digest::of(text) != release.digest) {
      throw failure("digest-mismatch", "`{}` is not what its index promises", release.file);
    }
    file.write(as_bytes(text));
  } else {
    place_.http.download({release.url, release.digest, std::nullopt, {}}, file.fd(), {});
  }
  file.commit(/*durable=*/false);
  return path;
}

std::variant<BuiltRelease, Conflict> ReleaseBuilder::build(const SourceRelease& release,
                                                           const Lock& base) {
  const Activity activity(place_.progress, "build " + release.file, 0, "");
  const fs::path archive = fetch(release);
  Workshop workshop(place_, base, release.name, release.file);
  workshop.unpack(archive);
  const fs::path uv = provide_uv(place_.cache, place_.progress);
  std::vector<std::string> wanted = workshop.build_system().requirements;
  WheelResolution tools;
  for (const bool last : {false, true}) {
    const Recipe recipe = requirements_of_build(place_.recipe, wanted);
    WheelRequest request;
    request.python = base.python;
    request.glibc = glibc_version(base);
    request.architecture = architecture_of(base.platform);
    request.recipe = &recipe;
    auto found = resolve_wheels(request, uv, place_.http, place_.cache, place_.progress);
    if (auto* conflict = std::get_if<Conflict>(&found)) {
      return without_tools(release, std::move(*conflict));
    }
    tools = std::get<WheelResolution>(std::move(found));
    workshop.equip(tools.wheels, tools.urls);
    if (last) break;
    const std::vector<std::string> more = workshop.more_requirements();
    if (more.empty()) break;
    wanted.insert(wanted.end(), more.begin(), more.end());
  }
  workshop.unpack(archive);
  const fs::path made = workshop.wheel();
  BuiltRelease built{
      keep(place_.store, made, release, base),
      {release.name, release.version, release.file, fs::file_size(archive), release.digest, {}},
      tools.wheels,
      read_metadata(made)};
  built.metadata.name = release.name;
  built.metadata.version = release.version;
  for (LockedWheel& wheel : built.build_wheels) {
    wheel.requested = false;
    built.source.built_with.push_back(wheel.file);
  }
  std::sort(built.source.built_with.begin(), built.source.built_with.end());
  return built;
}

void ReleaseBuilder::rebuild(const LockedWheel& wheel, const Lock& lock) {
  const LockedSource* source = lock.source_of(wheel);
  if (source == nullptr) {
    throw Error{Kind::internal, "unlocated", "a wheel that was not built here cannot be rebuilt"};
  }
  const Activity activity(place_.progress, "build " + source->file, 0, "");
  SourceRelease release{source->name, source->version, source->file,
                        {},           source->digest,  source->size_bytes};
  WheelRequest request;
  request.python = lock.python;
  request.glibc = glibc_version(lock);
  request.architecture = architecture_of(lock.platform);
  request.recipe = &place_.recipe;
  const fs::path cached = place_.cache / "sources" / source->digest.hex();
  if (!fs::exists(cached)) {
    const fs::path uv = provide_uv(place_.cache, place_.progress);
    const auto found = locate_source(source->name, source->version, request, uv, place_.cache);
    if (!found || found->digest != source->digest) {
      throw failure("input-gone", "not everything that the lock names can still be had")
          .because(fmt::format("`{}` is on none of this machine's package indexes", source->file))
          .hint(
              "lock again with `mlenv lock --upgrade`, or add the index that has it under "
              "`sources`");
    }
    release.url = found->url;
  }
  Workshop workshop(place_, lock, release.name, release.file);
  workshop.unpack(fetch(release));
  std::vector<LockedWheel> tools;
  for (const LockedWheel& one : lock.build_wheels) {
    const auto& with = source->built_with;
    if (std::find(with.begin(), with.end(), one.file) != with.end()) tools.push_back(one);
  }
  workshop.equip(tools, {});
  const LockedWheel made = keep(place_.store, workshop.wheel(), release, lock);
  if (made.digest == wheel.digest && made.file == wheel.file) return;
  throw failure("wheel-differs", "`{}` built here is not the one of the lock", source->file)
      .because(fmt::format("the lock has `{}`, sha256 {}", wheel.file, wheel.digest.hex()))
      .because(fmt::format("this build gave `{}`, sha256 {}", made.file, made.digest.hex()))
      .hint(
          "its build is not reproducible: take the store or a registry that has the finished "
          "layers, or lock again");
}

}  // namespace mlenv
