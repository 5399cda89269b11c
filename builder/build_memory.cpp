#include "builder/build_memory.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

#include "builder/key_text.hpp"
#include "builder/recall.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kStatedSchema = "mlenv.stated-source/1";
constexpr std::string_view kAskedSchema = "mlenv.asked-of-build/1";
constexpr std::string_view kWheelSchema = "mlenv.built-wheel/1";

/// What the network has may be other tomorrow.
std::int64_t day() {
  const auto now = std::chrono::system_clock::now();
  return std::chrono::floor<std::chrono::days>(now).time_since_epoch().count();
}

void add_source(KeyText& key, const LockedSource& source) {
  key.add("source", source.digest.hex());
  key.add("folder", source.subdirectory);
  key.add("describe", source.describe);
}

}  // namespace

BuildMemory::BuildMemory(Store& store, const LockedSource& source, const Lock& base,
                         const BuildSettings& settings, std::string hooks)
    : store_(store), source_(source), base_(base), settings_(settings), hooks_(std::move(hooks)) {}

Digest BuildMemory::stated_key() const {
  KeyText key{"stated source"};
  add_source(key, source_);
  return key.digest();
}

Digest BuildMemory::key(std::string_view kind, const std::vector<LockedWheel>& tools) const {
  KeyText key{kind};
  add_source(key, source_);
  key.add("package", source_.name);
  key.add("hooks", hooks_);
  key.add("platform", base_.platform);
  key.add("epoch", base_.epoch);
  key.add("python", base_.python);
  if (base_.interpreter) key.add("interpreter", base_.interpreter->digest.hex());
  for (const LockedDeb& deb : base_.debs) key.add("deb", deb.digest.hex());
  for (const LockedWheel& tool : tools) key.add("tool " + tool.file, tool.digest.hex());
  for (const auto& [name, value] : settings_.env) key.add("env " + name, value);
  key.add("config", config_settings_json(settings_));
  if (settings_.network) key.add("network", day());
  return key.digest();
}

std::optional<StatedSource> BuildMemory::stated() const {
  StatedSource found;
  const bool known = recall(store_, stated_key(), kStatedSchema, [&](const nlohmann::json& record) {
    record.at("requires").get_to(found.requirements);
    record.at("size").get_to(found.size_bytes);
    return true;
  });
  return known ? std::optional(std::move(found)) : std::nullopt;
}

void BuildMemory::keep_stated(const StatedSource& stated) {
  remember(store_, stated_key(), kStatedSchema,
           {{"requires", stated.requirements}, {"size", stated.size_bytes}});
}

std::optional<std::vector<std::string>> BuildMemory::asked(
    const std::vector<LockedWheel>& tools) const {
  std::vector<std::string> more;
  const bool known =
      recall(store_, key("asked of build", tools), kAskedSchema, [&](const nlohmann::json& record) {
        record.at("requires").get_to(more);
        return true;
      });
  return known ? std::optional(std::move(more)) : std::nullopt;
}

void BuildMemory::keep_asked(const std::vector<LockedWheel>& tools,
                             const std::vector<std::string>& more) {
  remember(store_, key("asked of build", tools), kAskedSchema, {{"requires", more}});
}

std::optional<LockedWheel> BuildMemory::wheel(const std::vector<LockedWheel>& tools) const {
  std::optional<LockedWheel> wheel;
  (void)recall(store_, key("built wheel", tools), kWheelSchema, [&](const nlohmann::json& record) {
    const Digest digest = Digest::parse(record.at("digest").get<std::string>());
    if (!store_.path_of(digest)) return false;
    wheel = LockedWheel{source_.name,
                        record.at("version").get<std::string>(),
                        record.at("file").get<std::string>(),
                        record.at("size").get<std::uint64_t>(),
                        digest,
                        false};
    return true;
  });
  return wheel;
}

void BuildMemory::keep_wheel(const std::vector<LockedWheel>& tools, const LockedWheel& wheel) {
  remember(store_, key("built wheel", tools), kWheelSchema,
           {{"digest", wheel.digest.str()},
            {"file", wheel.file},
            {"size", wheel.size_bytes},
            {"version", wheel.version}});
}

}  // namespace mlenv
