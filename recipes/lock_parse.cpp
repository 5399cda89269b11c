// Text → Lock, strict: a lock decides which bytes run, so nothing in it is guessed or overlooked.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "recipes/lock.hpp"
#include "recipes/lock_format.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using Is = TomlValue::Kind;

constexpr std::string_view kCode = "lock-invalid";

class LockReader {
 public:
  explicit LockReader(const fs::path& shown_path)
      : path_(shown_path), reader_(shown_path, std::string(kCode)) {}

  Lock read(const TomlValue& root) {
    Lock lock;
    lock.revision = read_format(reader_, root, path_, Lock::kVersion, Lock::kRevision);
    constexpr std::array<std::string_view, 8> kKeys = {
        "version", "revision", "platform", "epoch", "request", "settings", "resolved", "packages"};
    reader_.only(root, kKeys);
    lock.platform = read_platform(reader_, root);
    lock.epoch = static_cast<std::int64_t>(reader_.size(root, "epoch"));
    lock.request = request(reader_.member(root, "request", Is::table));
    lock.settings = settings(reader_.member(root, "settings", Is::table));
    resolved(reader_.member(root, "resolved", Is::table), lock);
    if (const TomlValue* all = reader_.optional_member(root, "packages", Is::table)) {
      packages(*all, lock);
    }
    if (lock.python.empty() && !lock.wheels.empty()) {
      reader_.fail(root, "there are wheels but no Python: `python` is missing in `resolved`");
    }
    return lock;
  }

 private:
  Request request(const TomlValue& table) const {
    constexpr std::array<std::string_view, 6> kKeys = {"base", "python",   "framework",
                                                       "cuda", "packages", "system"};
    reader_.only(table, kKeys);
    Request request{.base = reader_.text(table, "base"),
                    .python = reader_.optional_text(table, "python"),
                    .framework = reader_.optional_text(table, "framework"),
                    .cuda = reader_.optional_text(table, "cuda"),
                    .packages = reader_.texts(table, "packages"),
                    .system = reader_.texts(table, "system")};
    for (std::vector<std::string>* list : {&request.packages, &request.system}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    return request;
  }

  Settings settings(const TomlValue& table) const {
    constexpr std::array<std::string_view, 6> kKeys = {"name",     "workdir", "command",
                                                       "bytecode", "sources", "env"};
    reader_.only(table, kKeys);
    Settings settings{.name = reader_.text(table, "name"),
                      .env = {},
                      .workdir = reader_.text(table, "workdir"),
                      .command = reader_.texts(table, "command"),
                      .bytecode = reader_.optional_flag(table, "bytecode", true),
                      .sources = {}};
    if (table.find("sources") != nullptr) {
      settings.sources = read_digest(reader_, table, "sources");
    }
    if (!is_image_name(settings.name)) {
      reader_.fail(*table.find("name"), "`name` is not an image name");
    }
    if (!is_clean_absolute_path(settings.workdir)) {
      reader_.fail(*table.find("workdir"), "`workdir` is not a clean absolute path");
    }
    if (!settings.command.empty() && settings.command.front().empty()) {
      reader_.fail(*table.find("command"), "the first word of `command` is empty");
    }
    if (const TomlValue* env = reader_.optional_member(table, "env", Is::table)) {
      for (const auto& [key, value] : env->members) environment(key, value, settings);
    }
    return settings;
  }

  void environment(const std::string& key, const TomlValue& value, Settings& settings) const {
    if (!is_env_name(key)) {
      reader_.fail(value,
                   fmt::format("{} is not a name for an environment variable", toml_text(key)));
    }
    if (value.kind != Is::text) reader_.fail(value, fmt::format("`{}` is not a text", key));
    if (has_control(value.text, "\t\n")) {
      reader_.fail(value, fmt::format("`{}` holds control characters", key));
    }
    settings.env.emplace(key, value.text);
  }

  void resolved(const TomlValue& table, Lock& lock) const {
    constexpr std::array<std::string_view, 5> kKeys = {"distribution", "suite", "python", "cuda",
                                                       "min-driver"};
    reader_.only(table, kKeys);
    lock.distribution = word(table, "distribution");
    lock.suite = word(table, "suite");
    lock.python = reader_.optional_text(table, "python");
    if (!lock.python.empty()) version_number(*table.find("python"), 2);
    const bool has_cuda = table.find("cuda") != nullptr;
    if (has_cuda != (table.find("min-driver") != nullptr)) {
      reader_.fail(table, "`cuda` and `min-driver` go together");
    }
    if (!has_cuda) return;
    lock.cuda = LockedCuda{.release = reader_.text(table, "cuda"),
                           .min_driver = reader_.text(table, "min-driver")};
    version_number(*table.find("cuda"), 2);
    version_number(*table.find("min-driver"), 1);
  }

  /// A name that ends up in paths and labels.
  std::string word(const TomlValue& table, const std::string& key) const {
    const std::string& text = reader_.text(table, key);
    if (!is_image_name(text) || text.find('/') != std::string::npos) {
      reader_.fail(*table.find(key), fmt::format("`{}` is not a plain name", key));
    }
    return text;
  }

  /// Numbers joined by dots, at least `count` of them.
  void version_number(const TomlValue& value, int count) const {
    std::string_view rest = value.text;
    int found = 0;
    for (;;) {
      const std::size_t dot = rest.find('.');
      if (!all_digits(rest.substr(0, dot))) break;
      ++found;
      if (dot == std::string_view::npos) {
        if (found >= count) return;
        break;
      }
      rest.remove_prefix(dot + 1);
    }
    reader_.fail(value, fmt::format("{} is not a version number", toml_text(value.text)));
  }

  void packages(const TomlValue& table, Lock& lock) const {
    constexpr std::array<std::string_view, 2> kKeys = {"debian", "wheels"};
    reader_.only(table, kKeys);
    std::set<std::string> seen;
    if (const TomlValue* all = reader_.optional_member(table, "debian", Is::list)) {
      for (const TomlValue& one : all->items) lock.debs.push_back(deb(one, seen));
    }
    seen.clear();
    if (const TomlValue* all = reader_.optional_member(table, "wheels", Is::list)) {
      for (const TomlValue& one : all->items) lock.wheels.push_back(wheel(one, seen));
    }
    std::sort(lock.debs.begin(), lock.debs.end(), [](const LockedDeb& a, const LockedDeb& b) {
      return std::tie(a.name, a.architecture) < std::tie(b.name, b.architecture);
    });
    std::sort(lock.wheels.begin(), lock.wheels.end(),
              [](const LockedWheel& a, const LockedWheel& b) { return a.name < b.name; });
  }

  LockedDeb deb(const TomlValue& table, std::set<std::string>& seen) const {
    if (table.kind != Is::table) reader_.fail(table, "a package is a table in one line");
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
    if (deb.architecture != "amd64" && deb.architecture != "arm64" && deb.architecture != "all") {
      reader_.fail(*table.find("architecture"),
                   fmt::format("unknown architecture {}", toml_text(deb.architecture)));
    }
    if (!deb.path.starts_with("pool/") || !deb.path.ends_with(".deb") ||
        !is_clean_relative_path(deb.path)) {
      reader_.fail(*table.find("path"), fmt::format("{} is not a path like `pool/main/…/NAME.deb`",
                                                    toml_text(deb.path)));
    }
    once(table, deb.name + ':' + deb.architecture, seen);
    once(table, deb.path, seen);
    return deb;
  }

  LockedWheel wheel(const TomlValue& table, std::set<std::string>& seen) const {
    if (table.kind != Is::table) reader_.fail(table, "a package is a table in one line");
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
    if (!is_clean_relative_path(wheel.file) || wheel.file.find('/') != std::string::npos ||
        wheel.file.find('\\') != std::string::npos || !wheel.file.ends_with(".whl")) {
      reader_.fail(*table.find("file"),
                   fmt::format("{} is not the name of a wheel", toml_text(wheel.file)));
    }
    once(table, wheel.name, seen);
    once(table, wheel.file, seen);
    return wheel;
  }

  std::string version(const TomlValue& table) const {
    const std::string& text = reader_.text(table, "version");
    constexpr std::string_view kOthers = ".+-~:!_";
    const bool good = !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             kOthers.find(c) != std::string_view::npos;
    });
    if (!good) {
      reader_.fail(*table.find("version"), fmt::format("{} is not a version", toml_text(text)));
    }
    return text;
  }

  void once(const TomlValue& at, const std::string& what, std::set<std::string>& seen) const {
    if (!seen.insert(what).second) {
      reader_.fail(at, fmt::format("{} is there twice", toml_text(what)));
    }
  }

  fs::path path_;
  TomlReader reader_;
};

}  // namespace

int read_format(TomlReader& reader, const TomlValue& root, const fs::path& shown_path, int version,
                int revision) {
  const std::uint64_t found = reader.size(root, "version");
  if (found > static_cast<std::uint64_t>(version)) {
    throw usage_error("lock-newer", "`{}` has format version {}, this mlenv reads {}",
                      shown_path.string(), found, version)
        .hint("use the mlenv that wrote it, or a newer one");
  }
  if (found < 1) reader.fail(*root.find("version"), "`version` starts at 1");
  const std::uint64_t step = root.find("revision") == nullptr ? 0 : reader.size(root, "revision");
  if (step > 1'000'000) reader.fail(*root.find("revision"), "`revision` is too large");
  reader.set_tolerant(step > static_cast<std::uint64_t>(revision));
  return static_cast<int>(step);
}

Digest read_digest(const TomlReader& reader, const TomlValue& table, const std::string& key) {
  const std::string& hex = reader.text(table, key);
  try {
    return Digest::from_hex(hex);
  } catch (const Error&) {
    reader.fail(*table.find(key), fmt::format("`{}` is not 64 lower-case hex digits", key));
  }
}

std::string read_platform(const TomlReader& reader, const TomlValue& root) {
  const std::string& platform = reader.text(root, "platform");
  if (platform != "linux/amd64" && platform != "linux/arm64") {
    reader.fail(*root.find("platform"), fmt::format("unknown platform {}", toml_text(platform)));
  }
  return platform;
}

Lock parse_lock(std::string_view text, const fs::path& shown_path) {
  return LockReader(shown_path).read(parse_toml(text, shown_path, kCode));
}

}  // namespace mlenv
