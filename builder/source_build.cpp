#include "builder/source_build.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "builder/kept_source.hpp"
#include "recipes/platforms.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

Conflict without_tools(const LockedSource& source, Conflict why) {
  Conflict conflict;
  if (source.is_direct()) {
    conflict.headline = fmt::format("what the build of `{}` needs cannot be had", source.shown());
    conflict.hint = "change its `[build-system]`, or loosen what that asks for";
  } else {
    conflict.headline = fmt::format("`{}` {} has no wheel, and what its build needs cannot be had",
                                    source.name, source.version);
    conflict.hint = fmt::format("leave `{}` out, or choose another version of it", source.name);
  }
  conflict.facts = std::move(why.facts);
  conflict.facts.insert(conflict.facts.begin(), why.headline);
  return conflict;
}

}  // namespace

WheelTags tags_of(const Lock& base) {
  return {base.python_minor(), glibc_version(base),
          base.platform.substr(base.platform.find('/') + 1)};
}

LockedWheel keep_wheel(Store& store, const WheelAt& at, const Lock& base) {
  const auto& [path, file, wanted, version] = at;
  const auto name = parse_wheel_name(file);
  const bool same = name && normalise_wheel_name(name->name) == wanted &&
                    (version.empty() || is_same_version(name->version, version));
  if (!same || !tags_of(base).rank(file)) {
    throw failure("build-failed", "`{}` is no wheel of `{}`{} for the image", file, wanted,
                  version.empty() ? "" : ' ' + version);
  }
  Store::Staged staged = store.stage();
  const Fd in = open_file(path);
  FdSource source{in.get()};
  Sha256 hash;
  FunctionSink both{[&](ByteView bytes) {
    hash.write(bytes);
    write_all(staged.fd(), bytes);
  }};
  const std::uint64_t size = copy(source, both);
  const Digest digest = hash.finish();
  staged.commit(digest);
  return {wanted, version.empty() ? std::string(name->version) : version, file, size, digest,
          false};
}

SourceBuild::SourceBuild(const BuildPlace& place, LockedSource source, Lay lay, const Lock& base)
    : place_(place),
      source_(std::move(source)),
      lay_(std::move(lay)),
      base_(base),
      settings_(build_settings(place.recipe.steering.build, source_.name)),
      image_(wants_image(place.recipe, source_.name) ? base.wheels : std::vector<LockedWheel>{}),
      question_(place.recipe, settings_, image_),
      memory_(place.store, source_, base, settings_, BuildWorkshop::hooks()) {}

std::variant<BuiltRelease, Conflict> SourceBuild::run() {
  const StatedSource stated = this->stated();
  source_.size_bytes = stated.size_bytes;
  question_.require(stated.requirements, source_.shown());
  if (auto conflict = choose_tools()) return *std::move(conflict);
  const std::vector<std::string> more = asked();
  if (!more.empty()) {
    question_.require(more, source_.shown());
    if (auto conflict = choose_tools()) return *std::move(conflict);
  }
  return built(wheel());
}

BuildWorkshop& SourceBuild::workshop() {
  if (workshop_) return *workshop_;
  activity_.emplace(place_.progress, "build " + source_.shown(), 0, "");
  workshop_.emplace(place_, base_,
                    BuildSubject{source_.shown(), source_.name, source_.subdirectory, settings_});
  return *workshop_;
}

/// With the tools that were chosen last, and the source as it came.
BuildWorkshop& SourceBuild::equipped() {
  BuildWorkshop& shop = workshop();
  shop.unpack([&](const fs::path& to) { lay_(source_, to); });
  if (!is_equipped_) shop.equip(tools_.wheels, tools_.urls);
  is_equipped_ = true;
  return shop;
}

StatedSource SourceBuild::stated() {
  if (auto known = memory_.stated()) {
    if (known->size_bytes > 0 || source_.file.empty()) return *std::move(known);
  }
  BuildWorkshop& shop = workshop();
  shop.unpack([&](const fs::path& to) { lay_(source_, to); });
  StatedSource stated{shop.build_system().requirements, source_.size_bytes};
  memory_.keep_stated(stated);
  return stated;
}

std::optional<Conflict> SourceBuild::choose_tools() {
  WheelRequest request;
  request.python = base_.python;
  request.glibc = glibc_version(base_);
  request.architecture = architecture_of(base_.platform);
  request.recipe = &question_.recipe();
  const Lock before = tools_before();
  request.previous = &before;
  const fs::path uv = provide_uv(place_.cache, place_.progress);
  auto found = resolve_wheels(request, uv, place_.http, place_.cache, place_.progress);
  if (auto* conflict = std::get_if<Conflict>(&found)) {
    return without_tools(source_, std::move(*conflict));
  }
  auto& chosen = std::get<WheelResolution>(found);
  for (LockedWheel& tool : chosen.wheels) tool.requested = false;
  is_equipped_ = is_equipped_ && chosen.wheels == tools_.wheels;
  tools_ = std::move(chosen);
  return std::nullopt;
}

/// Versions that are kept: what the image has, then what built the source for the older lock.
Lock SourceBuild::tools_before() const {
  Lock before;
  before.wheels = image_;
  for (const LockedSource& one : base_.sources) {
    if (one.name != source_.name) continue;
    for (const LockedWheel& tool : tools_of(one, base_)) {
      if (find_wheel(before.wheels, tool.name) == nullptr) before.wheels.push_back(tool);
    }
  }
  return before;
}

std::vector<std::string> SourceBuild::asked() {
  if (auto known = memory_.asked(tools_.wheels)) return *std::move(known);
  std::vector<std::string> more = equipped().more_requirements();
  memory_.keep_asked(tools_.wheels, more);
  return more;
}

LockedWheel SourceBuild::wheel() {
  if (auto known = memory_.wheel(tools_.wheels)) return *std::move(known);
  const fs::path made = equipped().wheel();
  const LockedWheel wheel = keep_wheel(
      place_.store, {made, made.filename().string(), source_.name, source_.version}, base_);
  memory_.keep_wheel(tools_.wheels, wheel);
  return wheel;
}

BuiltRelease SourceBuild::built(LockedWheel wheel) {
  source_.version = wheel.version;
  for (const LockedWheel& tool : tools_.wheels) source_.built_with.push_back(tool.file);
  std::sort(source_.built_with.begin(), source_.built_with.end());
  fs::path path = place_.store.path_of(wheel.digest).value();
  ReleaseMetadata metadata = read_wheel_metadata(path);
  metadata.name = wheel.name;
  metadata.version = wheel.version;
  return BuiltRelease{std::move(wheel),    std::move(source_), std::move(tools_.wheels),
                      std::move(metadata), std::move(path),    question_.matched()};
}

}  // namespace mlenv
