#include "recipes/built_set.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "recipes/lock_format.hpp"
#include "recipes/platforms.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kBuiltErrorCode = "built-invalid";
constexpr int kBuiltVersion = 1;
constexpr int kOnePlatform = 1;  // 1: files
constexpr int kWithOthers = 2;   // 2: others
constexpr int kWithIndex = 3;    // 3: index, which programs of revision 2 refuse in one of theirs
constexpr int kRevision = 4;     // 4: facts

/// As it stands in a literal string of TOML: no apostrophe, and no DEL, which JSON lets stand.
std::string as_literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "\\u0027";
    } else if (c == '\x7f') {
      out += "\\u007f";
    } else {
      out += c;
    }
  }
  return out;
}

/// JSON text without the line's ends of the file it lay in.
std::string read_facts_text(const TomlReader& reader, const TomlValue& table) {
  const TomlValue* const value = reader.optional_member(table, "facts", TomlValue::Kind::text);
  if (value == nullptr) return {};
  std::string text{trim(value->text)};
  std::erase(text, '\r');
  if (!nlohmann::json::accept(text)) reader.fail(*value, "`facts` are no JSON");
  return text;
}

std::vector<std::pair<std::string, Digest>> read_layers(const TomlReader& reader,
                                                        const TomlValue& root) {
  std::vector<std::pair<std::string, Digest>> layers;
  const TomlValue& all = reader.member(root, "layers", TomlValue::Kind::list);
  for (const TomlValue& one : all.items) {
    if (one.kind != TomlValue::Kind::table) reader.fail(one, "a layer is a table in one line");
    constexpr std::array<std::string_view, 2> kKeys = {"title", "sha256"};
    reader.only(one, kKeys);
    layers.emplace_back(reader.text(one, "title"), read_digest(reader, one, "sha256"));
  }
  return layers;
}

std::string render_build(const Built& built) {
  std::string out = fmt::format("layer-format = {}\n", built.layer_format);
  out += fmt::format("lock = \"{}\"\n", built.lock.hex());
  if (built.files) out += fmt::format("files = \"{}\"\n", built.files->hex());
  out += fmt::format("image = \"{}\"\nlayers = [\n", built.image.hex());
  for (const auto& [title, digest] : built.layers) {
    out += fmt::format("  {{ title = {}, sha256 = \"{}\" }},\n", toml_text(title), digest.hex());
  }
  out += "]\n";
  if (!built.facts.empty()) out += fmt::format("facts = '''\n{}\n'''\n", built.facts);
  return out;
}

Built read_build(const TomlReader& reader, const TomlValue& table, std::string platform) {
  const std::uint64_t layer_format = reader.size(table, "layer-format");
  if (layer_format < 1 || layer_format > 1'000'000) {
    reader.fail(*table.find("layer-format"), "`layer-format` is not a format number");
  }
  return {.platform = std::move(platform),
          .lock = read_digest(reader, table, "lock"),
          .files = table.find("files") == nullptr
                       ? std::nullopt
                       : std::optional{read_digest(reader, table, "files")},
          .layer_format = static_cast<int>(layer_format),
          .image = read_digest(reader, table, "image"),
          .layers = read_layers(reader, table),
          .facts = read_facts_text(reader, table)};
}

void read_others(const TomlReader& reader, const TomlValue& root, BuiltSet& set) {
  const TomlValue* const all = reader.optional_member(root, "others", TomlValue::Kind::table);
  if (all == nullptr) return;
  for (const auto& [platform, table] : all->members) {
    if (table.kind != TomlValue::Kind::table) {
      reader.fail(table, "what is for a platform is a table");
    }
    constexpr std::array<std::string_view, 6> kKeys = {"layer-format", "lock",   "files",
                                                       "image",        "layers", "facts"};
    reader.only(table, kKeys);
    if (set.newer && !is_known_platform(platform)) continue;
    if (!is_known_platform(platform) || platform <= set.builds.back().platform) {
      reader.fail(table, fmt::format("{} does not come after the file's `platform`, or is none",
                                     toml_text(platform)));
    }
    set.builds.push_back(read_build(reader, table, platform));
  }
}

}  // namespace

const Built* BuiltSet::find(std::string_view platform) const {
  const auto found = std::find_if(builds.begin(), builds.end(),
                                  [&](const Built& built) { return built.platform == platform; });
  return found == builds.end() ? nullptr : &*found;
}

void BuiltSet::put(const Built& built) {
  std::erase_if(builds, [&](const Built& other) { return other.platform == built.platform; });
  builds.insert(std::find_if(builds.begin(), builds.end(),
                             [&](const Built& other) { return other.platform > built.platform; }),
                built);
  index.reset();
}

std::string render_builds(const BuiltSet& set) {
  const Built& first = set.builds.front();
  std::string out = "# Written by `mlenv build`: what the lock's bytes make. Worth committing.\n";
  int revision = set.builds.size() > 1 ? kWithOthers : kOnePlatform;
  if (set.index) revision = kWithIndex;
  if (std::any_of(set.builds.begin(), set.builds.end(),
                  [](const Built& built) { return !built.facts.empty(); })) {
    revision = kRevision;
  }
  out += fmt::format("version = {}\nrevision = {}\n", kBuiltVersion, revision);
  if (set.index) out += fmt::format("index = \"{}\"\n", set.index->hex());
  out += fmt::format("platform = {}\n", toml_text(first.platform)) + render_build(first);
  for (std::size_t i = 1; i < set.builds.size(); ++i) {
    const Built& other = set.builds[i];
    out += fmt::format("\n[others.{}]\n", toml_key(other.platform)) + render_build(other);
  }
  return out;
}

BuiltSet parse_builds(std::string_view text, const fs::path& shown_path) {
  TomlReader reader({.shown_path = shown_path,
                     .text = std::string(text),
                     .code = std::string(kBuiltErrorCode),
                     .hint = "restore it, or remove it and run `mlenv build`"});
  const TomlValue root = parse_toml(reader.file());
  const int revision = read_format(reader, root, kBuiltVersion, kRevision);
  constexpr std::array<std::string_view, 11> kKeys = {
      "version", "revision", "index",  "platform", "layer-format", "lock",
      "files",   "image",    "layers", "facts",    "others"};
  reader.only(root, kKeys);
  BuiltSet set;
  set.newer = revision > kRevision;
  // Of revision 2 there are files with it.
  if (root.find("index") != nullptr) set.index = read_digest(reader, root, "index");
  set.builds.push_back(read_build(reader, root, read_platform(reader, root)));
  read_others(reader, root, set);
  return set;
}

std::string facts_for_record(const ImageFacts& facts) {
  const nlohmann::json all = nlohmann::json::parse(render_image_facts(facts));
  std::string out = "{";
  for (const auto& [name, value] : all.items()) {
    if (name == "failed_imports")
      continue;  // of this machine's trial; records are equal everywhere
    out += fmt::format("{}\n\"{}\": {}", out.size() == 1 ? "" : ",", name, value.dump());
  }
  return as_literal(out + "\n}");
}

std::optional<ImageFacts> recorded_facts(const Built& built) {
  if (built.facts.empty()) return std::nullopt;
  try {
    return read_image_facts(built.facts, "facts of the build");
  } catch (const Error& error) {
    log::debug("recorded facts are not read: {}", error.what());
    return std::nullopt;
  }
}

std::string render_built(const Built& built) { return render_builds({{built}}); }

Built parse_built(std::string_view text, const fs::path& shown_path) {
  return std::move(parse_builds(text, shown_path).builds.front());
}

}  // namespace mlenv
