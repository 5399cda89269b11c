#include "recipes/lock_packages.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "recipes/lock_format.hpp"
#include "recipes/lock_sources.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

class PackageReader {
 public:
  PackageReader(const TomlReader& reader, Lock& lock)
      : reader_(reader),
        lock_(lock),
        architecture_(lock.platform.substr(lock.platform.find('/') + 1)) {}

  void debs(const TomlValue& all) {
    seen_.clear();
    for (const TomlValue& one : all.items) lock_.debs.push_back(deb(one));
  }
  void wheels(const TomlValue& all) {
    seen_.clear();
    for (const TomlValue& one : all.items) {
      lock_.wheels.push_back(wheel(one));
      once(one, lock_.wheels.back().name);
    }
  }
  /// Several versions of a package may build several sources.
  void build_wheels(const TomlValue& all) {
    seen_.clear();
    for (const TomlValue& one : all.items) lock_.build_wheels.push_back(wheel(one));
  }
  /// After both kinds of wheels, which they name.
  void sources(const TomlValue& all) {
    seen_.clear();
    for (const TomlValue& one : all.items) lock_.sources.push_back(source(one));
  }

  LockedPython interpreter(const TomlValue& table) const {
    constexpr std::array<std::string_view, 4> kKeys = {"version", "file", "size", "sha256"};
    reader_.only(table, kKeys);
    LockedPython python{.version = version(table),
                        .file = reader_.text(table, "file"),
                        .size_bytes = reader_.size(table, "size"),
                        .digest = read_digest(reader_, table, "sha256")};
    if (!is_clean_relative_path(python.file) || python.file.find('/') != std::string::npos) {
      reader_.fail(*table.find("file"),
                   fmt::format("{} is not the name of a file", toml_text(python.file)));
    }
    return python;
  }

 private:
  LockedDeb deb(const TomlValue& table) {
    if (table.kind != TomlKind::table) reader_.fail(table, "a package is a table in one line");
    constexpr std::array<std::string_view, 6> kKeys = {"name", "version", "architecture",
                                                       "path", "size",    "sha256"};
    reader_.only(table, kKeys);
    LockedDeb deb{.name = reader_.text(table, "name"),
                  .version = version(table),
                  .architecture = reader_.text(table, "architecture"),
                  .path = reader_.text(table, "path"),
                  .size_bytes = reader_.size(table, "size"),
                  .digest = read_digest(reader_, table, "sha256")};
    if (!is_debian_name(deb.name)) {
      reader_.fail(table, fmt::format("{} is not a Debian package name", toml_text(deb.name)));
    }
    check_architecture(table, deb);
    const bool in_pool = deb.path.starts_with("pool/") || lock_.revision >= Lock::kWholeRecipe;
    if (!in_pool || !deb.path.ends_with(".deb") || !is_clean_relative_path(deb.path)) {
      reader_.fail(*table.find("path"), fmt::format("{} is not a path like `pool/main/…/NAME.deb`",
                                                    toml_text(deb.path)));
    }
    once(table, deb.name + ':' + deb.architecture);
    once(table, deb.path);
    return deb;
  }

  void check_architecture(const TomlValue& table, const LockedDeb& deb) const {
    const TomlValue& at = *table.find("architecture");
    if (deb.architecture != "amd64" && deb.architecture != "arm64" && deb.architecture != "all") {
      reader_.fail(at, fmt::format("unknown architecture {}", toml_text(deb.architecture)));
    }
    if (deb.architecture != "all" && deb.architecture != architecture_) {
      reader_.fail(at, fmt::format("`{}` is for {}, the lock's `platform` is {}", deb.name,
                                   deb.architecture, lock_.platform));
    }
  }

  LockedWheel wheel(const TomlValue& table) {
    if (table.kind != TomlKind::table) reader_.fail(table, "a package is a table in one line");
    constexpr std::array<std::string_view, 6> kKeys = {"name", "version", "file",
                                                       "size", "sha256",  "requested"};
    reader_.only(table, kKeys);
    LockedWheel wheel{.name = reader_.text(table, "name"),
                      .version = version(table),
                      .file = reader_.text(table, "file"),
                      .size_bytes = reader_.size(table, "size"),
                      .digest = read_digest(reader_, table, "sha256"),
                      .requested = reader_.optional_flag(table, "requested", false)};
    if (!is_wheel_name(wheel.name)) {
      reader_.fail(table,
                   fmt::format("{} is not a normalised package name", toml_text(wheel.name)));
    }
    check_file(*table.find("file"), wheel);
    once(table, wheel.file);
    return wheel;
  }

  LockedSource source(const TomlValue& table) {
    LockedSource source = read_source(reader_, table, version(table));
    once(table, source.name);
    const bool known =
        std::any_of(lock_.wheels.begin(), lock_.wheels.end(), [&](const LockedWheel& wheel) {
          return wheel.name == source.name && wheel.version == source.version;
        });
    if (!known) reader_.fail(table, fmt::format("there is no wheel of `{}`", source.name));
    for (const std::string& file : source.built_with) {
      const bool there = std::any_of(lock_.build_wheels.begin(), lock_.build_wheels.end(),
                                     [&](const LockedWheel& wheel) { return wheel.file == file; });
      if (!there) reader_.fail(table, fmt::format("`{}` is not in `build-wheels`", file));
    }
    return source;
  }

  void check_file(const TomlValue& at, const LockedWheel& wheel) const {
    const auto name = parse_wheel_name(wheel.file);
    if (!name || !is_clean_relative_path(wheel.file) ||
        wheel.file.find_first_of("/\\") != std::string::npos) {
      reader_.fail(at, fmt::format("{} is not the name of a wheel", toml_text(wheel.file)));
    }
    if (normalise_wheel_name(name->name) != wheel.name) {
      reader_.fail(at, fmt::format("this file is of `{}`, not of `{}`", name->name, wheel.name));
    }
    if (!is_same_version(name->version, wheel.version)) {
      reader_.fail(
          at, fmt::format("this file is of version {}, not of {}", name->version, wheel.version));
    }
    if (!runs_on(*name, machine_name(architecture_))) {
      reader_.fail(at, fmt::format("this file is for another machine than the lock's `platform`, "
                                   "which is {}",
                                   lock_.platform));
    }
  }

  std::string version(const TomlValue& table) const {
    const std::string& text = reader_.text(table, "version");
    constexpr std::string_view kOthers = ".+-~:!_";
    const bool good = !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
      return is_digit(c) || is_letter(c) || kOthers.find(c) != std::string_view::npos;
    });
    if (!good) {
      reader_.fail(*table.find("version"), fmt::format("{} is not a version", toml_text(text)));
    }
    return text;
  }

  void once(const TomlValue& at, const std::string& what) {
    if (!seen_.insert(what).second) {
      reader_.fail(at, fmt::format("{} is there twice", toml_text(what)));
    }
  }

  const TomlReader& reader_;
  Lock& lock_;
  std::string architecture_;
  std::set<std::string> seen_;
};

}  // namespace

void read_packages(const TomlReader& reader, const TomlValue& table, Lock& lock) {
  constexpr std::array<std::string_view, 5> kKeys = {"interpreter", "debian", "wheels", "sources",
                                                     "build-wheels"};
  reader.only(table, kKeys);
  PackageReader packages(reader, lock);
  if (const TomlValue* one = reader.optional_member(table, "interpreter", TomlKind::table)) {
    lock.interpreter = packages.interpreter(*one);
  }
  if (const TomlValue* all = reader.optional_member(table, "debian", TomlKind::list))
    packages.debs(*all);
  if (const TomlValue* all = reader.optional_member(table, "wheels", TomlKind::list)) {
    packages.wheels(*all);
  }
  if (const TomlValue* all = reader.optional_member(table, "build-wheels", TomlKind::list)) {
    packages.build_wheels(*all);
  }
  if (const TomlValue* all = reader.optional_member(table, "sources", TomlKind::list)) {
    packages.sources(*all);
  }
  std::sort(lock.debs.begin(), lock.debs.end(), [](const LockedDeb& a, const LockedDeb& b) {
    return std::tie(a.name, a.architecture) < std::tie(b.name, b.architecture);
  });
  std::sort(lock.wheels.begin(), lock.wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.name < b.name; });
  std::sort(lock.sources.begin(), lock.sources.end(),
            [](const LockedSource& a, const LockedSource& b) { return a.name < b.name; });
  std::sort(lock.build_wheels.begin(), lock.build_wheels.end(),
            [](const LockedWheel& a, const LockedWheel& b) { return a.file < b.file; });
}

}  // namespace mlenv
