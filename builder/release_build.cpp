#include "builder/release_build.hpp"

#include <fcntl.h>
#include <algorithm>

#include "builder/build_memory.hpp"
#include "builder/direct_source.hpp"
#include "builder/foreign.hpp"
#include "builder/kept_source.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/demands.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_hashes.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

WheelTags tags_of(const Lock& base) {
  return {base.python_minor(), glibc_version(base),
          base.platform.substr(base.platform.find('/') + 1)};
}

struct WheelAt {
  fs::path path;
  std::string file;     ///< its own name
  std::string name;     ///< of the package that it must be of
  std::string version;  ///< the same; empty: whatever the file says
};

/// Into the store; what of it a lock holds.
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

const LockedWheel* find_wheel(const std::vector<LockedWheel>& wheels, const std::string& name) {
  const auto found = std::find_if(wheels.begin(), wheels.end(),
                                  [&](const LockedWheel& one) { return one.name == name; });
  return found == wheels.end() ? nullptr : &*found;
}

/// Of a wheel that these tools built.
Matched matched_with(const std::vector<LockedWheel>& tools, const std::string& package,
                     const Recipe& recipe, const std::vector<LockedWheel>& image) {
  Matched matched;
  for (const std::string& text : build_settings(recipe.steering.build, package).requirements) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one == nullptr) continue;
    const std::string name = one->normalised_name();
    const LockedWheel* tool = find_wheel(tools, name);
    const bool of_image = find_wheel(image, name) != nullptr;
    matched[name] = of_image && tool != nullptr ? tool->version : std::string{};
  }
  return matched;
}

/// What is asked of uv for a build.
class ToolQuestion {
 public:
  /// `settings` outlives it. `image`: what the image has, as far as that is known.
  ToolQuestion(const Recipe& recipe, const BuildSettings& settings,
               const std::vector<LockedWheel>& image)
      : recipe_(recipe_of_tools(recipe)) {
    for (const std::string& one : settings.constraints) constrain(one);
    for (const std::string& one : settings.requirements) require_of_image(one, image);
    if (recipe.compiler) require_compiler(image);
  }

  const Recipe& recipe() const { return recipe_; }
  const Matched& matched() const { return matched_; }

  void require(const std::vector<std::string>& texts, const std::string& shown) {
    for (const std::string& one : texts) {
      const auto read = parse_requirement(one);
      const auto* requirement = std::get_if<Requirement>(&read);
      if (requirement != nullptr && !requirement->address.empty()) {
        throw failure("bad-source", "`{}` cannot be built", shown)
            .because(
                fmt::format("its build requires `{}`, and build requirements come from indexes",
                            requirement->str()));
      }
      recipe_.packages.push_back({one, 1, 1});
    }
  }

 private:
  void constrain(const std::string& text) {
    static const auto kFile =
        std::make_shared<const RequirementsText>(RequirementsText{"build: constraints", {}});
    recipe_.listed.constraints.push_back({text, kFile, 1, 1});
  }

  void require_of_image(const std::string& text, const std::vector<LockedWheel>& image) {
    recipe_.packages.push_back({text, 1, 1});
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one == nullptr) return;
    const LockedWheel* wheel = find_wheel(image, one->normalised_name());
    matched_[one->normalised_name()] = wheel == nullptr ? std::string{} : wheel->version;
    if (wheel != nullptr) constrain(fmt::format("{}=={}", wheel->name, wheel->version));
  }

  /// Where the image gets nvcc, builds do.
  void require_compiler(const std::vector<LockedWheel>& image) {
    const std::string release = compiler_release(image);
    if (release.empty()) return;
    for (const std::string& one : compiler_requirements(release)) {
      recipe_.packages.push_back({one, 1, 1});
    }
    for (const std::string& one : compiler_constraints(release)) constrain(one);
  }

  Recipe recipe_;
  Matched matched_;
};

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

/// What a lock's source is of.
PackageAddress address_of(const LockedSource& source) {
  PackageAddress address;
  if (!source.git.empty()) {
    address.kind = PackageAddress::Kind::git;
    address.place = source.git;
  } else if (!source.url.empty()) {
    address.kind = PackageAddress::Kind::url;
    address.place = source.url;
  } else {
    address.place = source.path;
  }
  address.reference = source.reference;
  address.subdirectory = source.subdirectory;
  return address;
}

Error cannot_rebuild(const LockedWheel& wheel, const Lock& lock) {
  return failure("foreign-platform", "`{}` is not here, and has to be built again from its source",
                 wheel.file)
      .because(
          fmt::format("that runs its code with the image's Python, on a {} machine", lock.platform))
      .hint(fmt::format("run `mlenv vendor` on a {} machine, and bring `vendor` along",
                        lock.platform));
}

Error changed_since(const LockedSource& source, const Digest& now) {
  return failure("file-changed", "`{}` changed since it was held against the lock", source.shown())
      .because(fmt::format("the lock has sha256 {}", source.digest.hex()))
      .because(fmt::format("it is now sha256 {}", now.hex()))
      .hint("run the command again when nothing writes it");
}

}  // namespace

Recipe recipe_of_tools(const Recipe& recipe) {
  Recipe wanted;
  wanted.path = recipe.path.parent_path() / "[build-system]";
  wanted.sources = recipe.sources;
  wanted.listed.indexes = recipe.listed.indexes;
  return wanted;
}

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

/// Chooses the build requirements, and builds what was not built before; `source` is told what
/// built it.
class ReleaseBuilder::Making {
 public:
  Making(const BuildPlace& place, LockedSource source, Lay lay, const Lock& base)
      : place_(place),
        source_(std::move(source)),
        lay_(std::move(lay)),
        base_(base),
        settings_(build_settings(place.recipe.steering.build, source_.name)),
        question_(place.recipe, settings_, base.wheels),
        memory_(place.store, source_, base, settings_, BuildWorkshop::hooks()) {}

  std::variant<BuiltRelease, Conflict> run() {
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

 private:
  BuildWorkshop& workshop() {
    if (workshop_) return *workshop_;
    activity_.emplace(place_.progress, "build " + source_.shown(), 0, "");
    workshop_.emplace(place_, base_,
                      BuildSubject{source_.shown(), source_.name, source_.subdirectory, settings_});
    return *workshop_;
  }

  /// With the tools that were chosen last, and the source as it came.
  BuildWorkshop& equipped() {
    BuildWorkshop& shop = workshop();
    shop.unpack([&](const fs::path& to) { lay_(source_, to); });
    if (!is_equipped_) shop.equip(tools_.wheels, tools_.urls);
    is_equipped_ = true;
    return shop;
  }

  StatedSource stated() {
    if (auto known = memory_.stated()) {
      if (known->size_bytes > 0 || source_.file.empty()) return *std::move(known);
    }
    BuildWorkshop& shop = workshop();
    shop.unpack([&](const fs::path& to) { lay_(source_, to); });
    StatedSource stated{shop.build_system().requirements, source_.size_bytes};
    memory_.keep_stated(stated);
    return stated;
  }

  std::optional<Conflict> choose_tools() {
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
    tools_ = std::get<WheelResolution>(std::move(found));
    for (LockedWheel& tool : tools_.wheels) tool.requested = false;
    is_equipped_ = false;
    return std::nullopt;
  }

  /// Versions that are kept: what the image has, then what built the source for the older lock.
  Lock tools_before() const {
    Lock before;
    before.wheels = base_.wheels;
    for (const LockedSource& one : base_.sources) {
      if (one.name != source_.name) continue;
      for (const LockedWheel& tool : tools_of(one, base_)) {
        if (find_wheel(before.wheels, tool.name) == nullptr) before.wheels.push_back(tool);
      }
    }
    return before;
  }

  std::vector<std::string> asked() {
    if (auto known = memory_.asked(tools_.wheels)) return *std::move(known);
    std::vector<std::string> more = equipped().more_requirements();
    memory_.keep_asked(tools_.wheels, more);
    return more;
  }

  LockedWheel wheel() {
    if (auto known = memory_.wheel(tools_.wheels)) return *std::move(known);
    const fs::path made = equipped().wheel();
    const LockedWheel wheel = keep_wheel(
        place_.store, {made, made.filename().string(), source_.name, source_.version}, base_);
    memory_.keep_wheel(tools_.wheels, wheel);
    return wheel;
  }

  BuiltRelease built(LockedWheel wheel) {
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

  const BuildPlace& place_;
  LockedSource source_;
  Lay lay_;
  const Lock& base_;
  BuildSettings settings_;
  ToolQuestion question_;
  BuildMemory memory_;
  std::optional<Activity> activity_;
  std::optional<BuildWorkshop> workshop_;
  WheelResolution tools_;
  bool is_equipped_ = false;
};

std::variant<BuiltRelease, Conflict> ReleaseBuilder::build(const SourceRelease& release,
                                                           const Lock& base) {
  LockedSource source{release.name, release.version, release.file, 0, release.digest, {}};
  const Lay lay = [&](LockedSource& told, const fs::path& to) {
    const fs::path archive = fetch(release);
    told.size_bytes = fs::file_size(archive);
    unpack_source(archive, release.file, to);
  };
  return Making(place_, std::move(source), lay, base).run();
}

std::variant<BuiltRelease, Conflict> ReleaseBuilder::build_direct(const DirectRequirement& wanted,
                                                                  const Lock& base,
                                                                  const Lock* before) {
  const LockedSource* kept = kept_source(wanted, before);
  const bool stands = kept != nullptr && builds_alike(*before, base);
  const bool is_path = wanted.address.kind == PackageAddress::Kind::path;
  const auto taken = [&]() -> std::optional<BuiltRelease> {
    require_promised(wanted, *kept);
    const Matched matched =
        matched_with(tools_of(*kept, *before), wanted.name, place_.recipe, base.wheels);
    if (is_stale(matched, base.wheels)) return std::nullopt;
    auto again = take_over(*kept, *before);
    if (again) again->matched = matched;
    return again;
  };
  // A commit, and a file whose digest is known, are what they were; a path may lead to more now.
  if (stands && !is_path) {
    if (auto again = taken()) return *std::move(again);
  }
  DirectSource brought = bring(wanted, kept, before);
  const bool same = kept != nullptr && kept->digest == brought.locked.digest;
  if (stands && is_path && same) {
    if (auto again = taken()) return *std::move(again);
  }
  tell_git_version(brought, same ? &kept->describe : nullptr, place_);
  LockedSource source = brought.locked;
  source.name = wanted.name;
  if (wanted.address.is_wheel()) return take_wheel(wanted, std::move(source), brought.file, base);
  if (base.base) {
    Conflict conflict;
    conflict.headline =
        fmt::format("`{}` has to be built, which is done on bases made from packages alone",
                    wanted.address.str());
    conflict.hint = "choose a base like `debian:bookworm`, or put a wheel in its place";
    return conflict;
  }
  const Lay lay = [&](LockedSource&, const fs::path& to) { brought.lay(to); };
  auto made = Making(place_, std::move(source), lay, base).run();
  if (const auto* built = std::get_if<BuiltRelease>(&made)) {
    require_promised(wanted, built->source);
  }
  return made;
}

/// nullopt where it is not there any more, and cannot be built again to the same bytes.
std::optional<BuiltRelease> ReleaseBuilder::take_over(const LockedSource& source,
                                                      const Lock& lock) {
  if (auto found = find_built(source, lock)) return found;
  try {
    rebuild(wheel_of(source, lock), lock);
  } catch (const Error& error) {
    if (error.code() != "wheel-differs") throw;
    return std::nullopt;
  }
  return find_built(source, lock);
}

bool ReleaseBuilder::is_at_hand(const LockedWheel& wheel) {
  return place_.store.path_of(wheel.digest) ||
         keep_vendored(place_.store, place_.vendor, locked_file(wheel));
}

std::optional<BuiltRelease> ReleaseBuilder::find_built(const LockedSource& source,
                                                       const Lock& lock) {
  const LockedWheel& wheel = wheel_of(source, lock);
  if (!is_at_hand(wheel)) return std::nullopt;
  const fs::path path = place_.store.path_of(wheel.digest).value();
  ReleaseMetadata metadata = read_wheel_metadata(path);
  metadata.name = wheel.name;
  metadata.version = wheel.version;
  return BuiltRelease{wheel, source, tools_of(source, lock), std::move(metadata), path};
}

std::variant<BuiltRelease, Conflict> ReleaseBuilder::take_wheel(const DirectRequirement& wanted,
                                                                LockedSource source,
                                                                const fs::path& path,
                                                                const Lock& base) {
  const auto name = parse_wheel_name(source.file);
  if (!name || normalise_wheel_name(name->name) != wanted.name) {
    throw wanted.mistake(fmt::format("`{}` is no wheel of `{}`", source.file, wanted.name));
  }
  if (!tags_of(base).rank(source.file)) {
    Conflict conflict;
    conflict.headline = fmt::format("`{}` is not for Python {} and glibc {} on {}", source.file,
                                    base.python_minor(), glibc_version(base), base.platform);
    conflict.hint = "name a wheel that is, or the source that it can be built from";
    return conflict;
  }
  LockedWheel wheel = keep_wheel(place_.store, {path, source.file, wanted.name, {}}, base);
  source.version = wheel.version;
  require_promised(wanted, source);
  const fs::path kept = place_.store.path_of(wheel.digest).value();
  ReleaseMetadata metadata = read_wheel_metadata(kept);
  metadata.name = wheel.name;
  metadata.version = wheel.version;
  return BuiltRelease{std::move(wheel), std::move(source), {}, std::move(metadata), kept};
}

void ReleaseBuilder::require_promised(const DirectRequirement& wanted,
                                      const LockedSource& source) const {
  if (source.file.empty()) return;
  const SourceRelease release{source.name,          source.version, source.file,
                              wanted.address.str(), source.digest,  source.size_bytes};
  mlenv::require_promised(release, wanted.recipe->listed);
}

/// `kept` is what `before` says of it; both may be null.
DirectSource ReleaseBuilder::bring(const DirectRequirement& wanted, const LockedSource* kept,
                                   const Lock* before) {
  if (kept == nullptr) return bring_direct(wanted, {}, std::nullopt, place_);
  if (kept->url.empty()) return bring_direct(wanted, kept->commit, kept->digest, place_);
  DirectSource brought = file_again(*kept, *before);
  brought.locked.version.clear();
  brought.locked.built_with.clear();
  return brought;
}

DirectSource ReleaseBuilder::bring_again(const LockedSource& source) const {
  const DirectRequirement wanted{source.name, address_of(source), &place_.recipe, nullptr, nullptr};
  DirectSource brought = bring_direct(wanted, source.commit, source.digest, place_);
  if (brought.locked.digest != source.digest) {
    throw changed_since(source, brought.locked.digest);
  }
  tell_git_version(brought, &source.describe, place_);
  return brought;
}

fs::path ReleaseBuilder::fetch_locked(const LockedSource& source, const Lock& lock) const {
  InputSources sources;
  sources.vendor = place_.vendor;
  sources.snapshots = place_.snapshots;
  sources.source_url = [&](const LockedSource& one) {
    if (!one.url.empty()) return one.url;
    return source_url(place_.recipe, lock, one, place_.cache, place_.progress);
  };
  Inputs inputs{place_.store, place_.http, sources, place_.cache, place_.progress};
  return inputs.source(source);
}

/// Of an index or a server.
DirectSource ReleaseBuilder::file_again(const LockedSource& source, const Lock& lock) {
  const LockedWheel& wheel = wheel_of(source, lock);
  const fs::path archive = source.digest == wheel.digest && is_at_hand(wheel)
                               ? place_.store.path_of(wheel.digest).value()
                               : fetch_locked(source, lock);
  return {source,
          [archive, file = source.file](const fs::path& to) { unpack_source(archive, file, to); },
          archive,
          {}};
}

void ReleaseBuilder::rebuild(const LockedWheel& wheel, const Lock& lock) {
  const LockedSource* source = lock.source_of(wheel);
  if (source == nullptr) {
    throw Error{Kind::internal, "unlocated", "a wheel that was not built here cannot be rebuilt"};
  }
  if (!runs_here(lock.platform) && source->file != wheel.file) throw cannot_rebuild(wheel, lock);
  const bool is_file = !source->is_direct() || !source->url.empty();
  const DirectSource brought = is_file ? file_again(*source, lock) : bring_again(*source);
  const auto made = [&] {
    if (source->file == wheel.file) {
      return keep_wheel(place_.store, {brought.file, wheel.file, wheel.name, wheel.version}, lock);
    }
    const Activity activity(place_.progress, "build " + source->shown(), 0, "");
    BuildWorkshop workshop(
        place_, lock,
        BuildSubject{source->shown(), source->name, source->subdirectory,
                     build_settings(place_.recipe.steering.build, source->name)});
    workshop.unpack(brought.lay);
    workshop.equip(tools_of(*source, lock), {});
    const fs::path path = workshop.wheel();
    return keep_wheel(place_.store, {path, path.filename().string(), wheel.name, wheel.version},
                      lock);
  }();
  if (made.digest == wheel.digest && made.file == wheel.file) return;
  throw failure("wheel-differs", "`{}` built here is not the one of the lock", source->shown())
      .because(fmt::format("the lock has `{}`, sha256 {}", wheel.file, wheel.digest.hex()))
      .because(fmt::format("this build gave `{}`, sha256 {}", made.file, made.digest.hex()))
      .hint(
          "its build is not reproducible: take the store or a registry that has the finished "
          "layers, or lock again");
}

}  // namespace mlenv
