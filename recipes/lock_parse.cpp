// Text → locks, strict: a lock decides which bytes run, so nothing in it is guessed or overlooked.
#include <algorithm>
#include <array>

#include "recipes/compat/architecture.hpp"
#include "recipes/lock.hpp"
#include "recipes/lock_base.hpp"
#include "recipes/lock_data.hpp"
#include "recipes/lock_format.hpp"
#include "recipes/lock_packages.hpp"
#include "recipes/lock_parts.hpp"
#include "recipes/lock_run.hpp"
#include "recipes/lock_steering.hpp"
#include "recipes/platforms.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kLockErrorCode = "lock-invalid";
constexpr std::string_view kLockHint = "restore it, or remove it and run `mlenv lock`";

class LockReader {
 public:
  explicit LockReader(TomlFile file) : reader_(std::move(file)) {}

  LockSet read() {
    const TomlValue root = parse_toml(reader_.file());
    Lock lock;
    lock.revision = read_format(reader_, root, Lock::kVersion, Lock::kRevision);
    constexpr std::array<std::string_view, 11> kKeys = {
        "version",  "revision", "checksum", "platform", "epoch", "request",
        "settings", "resolved", "packages", "base",     "others"};
    reader_.only(root, kKeys);
    lock.platform = read_platform(reader_, root);
    lock.epoch = static_cast<std::int64_t>(reader_.size(root, "epoch"));
    lock.request = request(reader_.member(root, "request", TomlKind::table), lock.revision);
    const bool on_image = root.find("base") != nullptr;
    lock.settings = settings(reader_.member(root, "settings", TomlKind::table), on_image);
    const int revision = lock.revision;
    const Lock common = lock;
    part(root, lock, nullptr);
    LockSet set;
    set.locks.push_back(std::move(lock));
    others(root, common, set);
    checksum(root, revision, set);
    return set;
  }

 private:
  /// What is of one platform. Of another than the first, packages are added from that one.
  void part(const TomlValue& table, Lock& lock, const Lock* first) {
    const TomlValue* const base = base_table(table, lock);
    resolved(reader_.member(table, "resolved", TomlKind::table), lock, base != nullptr);
    if (const TomlValue* all = reader_.optional_member(table, "packages", TomlKind::table)) {
      read_packages(reader_, *all, lock);
    }
    if (first != nullptr) add_shared(reader_, table, *first, lock);
    if (base != nullptr) lock.base = read_base(reader_, *base, lock);
    if (lock.python.empty() && !lock.wheels.empty()) {
      reader_.fail(table, "there are wheels but no Python: `python` is missing in `resolved`");
    }
    if (lock.interpreter && lock.interpreter->version != lock.python) {
      reader_.fail(table, "`interpreter` is not of the version that `python` in `resolved` says");
    }
  }

  void others(const TomlValue& root, const Lock& common, LockSet& set) {
    const TomlValue* const all = reader_.optional_member(root, "others", TomlKind::table);
    if (all == nullptr) return;
    if (common.revision < Lock::kWholeRecipe) {
      reader_.fail(*all, fmt::format("locks of revision {} have no `others`", common.revision));
    }
    for (const auto& [platform, table] : all->members) {
      if (table.kind != TomlKind::table) reader_.fail(table, "what is for a platform is a table");
      constexpr std::array<std::string_view, 4> kKeys = {"resolved", "base", "packages", "without"};
      reader_.only(table, kKeys);
      if (!is_known_platform(platform)) {
        if (common.revision > Lock::kRevision) continue;  // a newer mlenv's
        reader_.fail(table, fmt::format("unknown platform {}", toml_text(platform)));
      }
      // The members come sorted, as platforms are, and the first is before them all.
      if (platform <= set.locks.back().platform) {
        reader_.fail(table, fmt::format("{} does not come after the lock's `platform`",
                                        toml_text(platform)));
      }
      if ((table.find("base") == nullptr) != !set.locks.front().base) {
        reader_.fail(table, "an image is the base for all platforms or for none");
      }
      Lock lock = common;
      lock.platform = platform;
      part(table, lock, &set.locks.front());
      set.locks.push_back(std::move(lock));
    }
    // Each is what it would be alone; what is newer than this mlenv stays unwritable.
    if (common.revision > Lock::kRevision) return;
    if (set.locks.size() < 2) reader_.fail(*all, "`others` holds no platform");
    for (Lock& lock : set.locks) lock.revision = least_revision(lock);
  }

  const TomlValue* base_table(const TomlValue& root, const Lock& lock) const {
    const TomlValue* const base = reader_.optional_member(root, "base", TomlKind::table);
    if (base != nullptr && lock.revision < Lock::kWholeRecipe) {
      reader_.fail(*base, fmt::format("locks of revision {} have no `base`", lock.revision));
    }
    return base;
  }

  /// What a newer mlenv wrote is not known well enough to be added up.
  void checksum(const TomlValue& root, int revision, const LockSet& set) const {
    if (revision > Lock::kRevision) return;
    const bool expected = revision >= Lock::kChecksumRevision;
    if (!expected && root.find("checksum") == nullptr) return;
    if (read_digest(reader_, root, "checksum") == locks_digest(set)) return;
    reader_.fail(*root.find("checksum"),
                 "the lock was edited or merged by hand: this checksum is not of its content");
  }

  Request request(const TomlValue& table, int revision) const {
    constexpr std::array<std::string_view, 14> kKeys = {
        "base",      "python",   "interpreter",  "framework",   "cuda",   "driver", "gpus",
        "libraries", "packages", "requirements", "constraints", "hashes", "system", "steering"};
    reader_.only(table, kKeys);
    Request request{.base = reader_.text(table, "base"),
                    .python = reader_.optional_text(table, "python"),
                    .interpreter = reader_.optional_text(table, "interpreter"),
                    .framework = reader_.optional_text(table, "framework"),
                    .cuda = reader_.optional_text(table, "cuda"),
                    .packages = reader_.texts(table, "packages"),
                    .requirements = reader_.texts(table, "requirements"),
                    .constraints = reader_.texts(table, "constraints"),
                    .hashes = {},
                    .system = reader_.texts(table, "system"),
                    .driver = reader_.optional_text(table, "driver"),
                    .gpus = reader_.texts(table, "gpus"),
                    .libraries = reader_.texts(table, "libraries"),
                    .steering = {}};
    if (table.find("hashes") != nullptr) request.hashes = read_digest(reader_, table, "hashes");
    for (std::vector<std::string>* list :
         {&request.packages, &request.requirements, &request.constraints, &request.system,
          &request.gpus, &request.libraries}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    if (const TomlValue* own = reader_.optional_member(table, "steering", TomlKind::table)) {
      if (revision < Lock::kSteering) {
        reader_.fail(*own, fmt::format("locks of revision {} have no `steering`", revision));
      }
      request.steering = read_steering(reader_, *own);
    }
    return request;
  }

  Settings settings(const TomlValue& table, bool on_image) const {
    constexpr std::array<std::string_view, 8> kKeys = {"name",    "workdir", "command", "bytecode",
                                                       "sources", "env",     "run",     "data"};
    reader_.only(table, kKeys);
    Settings settings{.name = reader_.text(table, "name"),
                      .env = {},
                      .workdir = on_image ? reader_.optional_text(table, "workdir")
                                          : reader_.text(table, "workdir"),
                      .command = reader_.texts(table, "command"),
                      .bytecode = reader_.optional_flag(table, "bytecode", true),
                      .sources = {},
                      .run = read_run_steps(reader_, table),
                      .data = read_data(reader_, table)};
    if (table.find("sources") != nullptr) {
      settings.sources = read_digest(reader_, table, "sources");
    }
    if (!is_image_name(settings.name)) {
      reader_.fail(*table.find("name"), "`name` is not an image name");
    }
    if (table.find("workdir") != nullptr && !is_clean_absolute_path(settings.workdir)) {
      reader_.fail(*table.find("workdir"), "`workdir` is not a clean absolute path");
    }
    if (!settings.command.empty() && settings.command.front().empty()) {
      reader_.fail(*table.find("command"), "the first word of `command` is empty");
    }
    if (const TomlValue* env = reader_.optional_member(table, "env", TomlKind::table)) {
      for (const auto& [key, value] : env->members) environment(key, value, settings);
    }
    return settings;
  }

  void environment(const std::string& key, const TomlValue& value, Settings& settings) const {
    if (!is_env_name(key)) {
      reader_.fail(value,
                   fmt::format("{} is not a name for an environment variable", toml_text(key)));
    }
    if (value.kind != TomlKind::text) reader_.fail(value, fmt::format("`{}` is not a text", key));
    if (has_control(value.text, "\t\n")) {
      reader_.fail(value, fmt::format("`{}` holds control characters", key));
    }
    settings.env.emplace(key, value.text);
  }

  void resolved(const TomlValue& table, Lock& lock, bool on_image) const {
    constexpr std::array<std::string_view, 8> kKeys = {
        "distribution", "suite", "python", "cuda", "min-driver", "cudnn", "nccl", "architectures"};
    reader_.only(table, kKeys);
    for (auto [key, value] :
         {std::pair{"distribution", &lock.distribution}, {"suite", &lock.suite}}) {
      if (!on_image || table.find(key) != nullptr) *value = word(table, key);
    }
    lock.python = reader_.optional_text(table, "python");
    if (!lock.python.empty()) version_number(*table.find("python"), 2);
    const bool has_cuda = table.find("cuda") != nullptr;
    if (has_cuda != (table.find("min-driver") != nullptr)) {
      reader_.fail(table, "`cuda` and `min-driver` go together");
    }
    if (!has_cuda) return;
    lock.cuda = LockedCuda{.release = reader_.text(table, "cuda"),
                           .min_driver = reader_.text(table, "min-driver"),
                           .cudnn = reader_.optional_text(table, "cudnn"),
                           .nccl = reader_.optional_text(table, "nccl"),
                           .architectures = reader_.texts(table, "architectures")};
    version_number(*table.find("cuda"), 2);
    version_number(*table.find("min-driver"), 1);
    for (const std::string& text : lock.cuda->architectures) {
      if (parse_device_code(text)) continue;
      reader_.fail(*table.find("architectures"),
                   fmt::format("{} is not a GPU architecture", toml_text(text)));
    }
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

  TomlReader reader_;
};

}  // namespace

int read_format(TomlReader& reader, const TomlValue& root, int version, int revision) {
  if (root.members.empty()) reader.fail(root, "the file is empty");
  const std::uint64_t found = reader.size(root, "version");
  if (found > static_cast<std::uint64_t>(version)) {
    throw usage_error("lock-newer", "`{}` has format version {}, this mlenv reads {}",
                      reader.file().shown_path.string(), found, version)
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
  if (!is_known_platform(platform)) {
    reader.fail(*root.find("platform"), fmt::format("unknown platform {}", toml_text(platform)));
  }
  return platform;
}

LockSet parse_locks(std::string_view text, const fs::path& shown_path) {
  return LockReader({.shown_path = shown_path,
                     .text = std::string(text),
                     .code = std::string(kLockErrorCode),
                     .hint = std::string(kLockHint)})
      .read();
}

Lock parse_lock(std::string_view text, const fs::path& shown_path) {
  return std::move(parse_locks(text, shown_path).locks.front());
}

}  // namespace mlenv
