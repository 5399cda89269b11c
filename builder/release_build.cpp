#include "builder/release_build.hpp"

#include <fcntl.h>
#include <algorithm>

#include "builder/build_tools.hpp"
#include "builder/direct_source.hpp"
#include "builder/foreign.hpp"
#include "builder/kept_source.hpp"
#include "builder/source_build.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_hashes.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

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
  LockedSource source{release.name, release.version, release.file, 0, release.digest, {}};
  const SourceBuild::Lay lay = [&](LockedSource& told, const fs::path& to) {
    const fs::path archive = fetch(release);
    told.size_bytes = fs::file_size(archive);
    unpack_source(archive, release.file, to);
  };
  return SourceBuild(place_, std::move(source), lay, base).run();
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
  const SourceBuild::Lay lay = [&](LockedSource&, const fs::path& to) { brought.lay(to); };
  auto made = SourceBuild(place_, std::move(source), lay, base).run();
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
