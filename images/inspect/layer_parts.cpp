#include "images/inspect/layer_parts.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/paths.hpp"
#include "base/record_json.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kPackedVersion = "mlenv.layer-facts/2\n";
constexpr int kMostHardLinkSteps = 64;
constexpr RecordKind kPacked = {"mlenv.layer-facts/2", "facts of a layer", ""};

std::size_t bytes_of(const ElfFile& elf) {
  std::size_t sum = sizeof elf + elf.interpreter.size() + elf.soname.size() + elf.rpath.size() +
                    elf.runpath.size() + elf.forward_compatibility.size();
  const auto add = [&sum](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) sum += sizeof(std::string) + text.size();
  };
  add(elf.needed);
  add(elf.versions);
  for (const VersionNeed& need : elf.version_needs) add(need.versions);
  return sum;
}

}  // namespace

bool is_wanted_text(std::string_view path, std::uint64_t bytes) {
  if (bytes > kLargestText) return false;
  return path == "etc/passwd" || path == "etc/ld.so.cache" || path.ends_with("/torch/version.py") ||
         path.ends_with("/tensorflow/python/platform/build_info.py");
}

bool is_never_elf(std::string_view path) {
  constexpr std::array<std::string_view, 24> kEndings = {
      ".py",  ".pyc", ".pyi",  ".h",    ".hpp",  ".cuh",  ".inc", ".txt",
      ".md",  ".rst", ".json", ".html", ".css",  ".js",   ".xml", ".png",
      ".svg", ".gz",  ".npy",  ".mo",   ".list", ".conf", ".csv", ".cmake"};
  const std::string_view name = last_part(path);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  return std::find(kEndings.begin(), kEndings.end(), name.substr(dot)) != kEndings.end();
}

void LayerParts::spend(std::size_t bytes) {
  constexpr std::size_t kNode = 128;  // around each
  if (bytes + kNode > left_) {
    throw failure("too-large", "the image has more files than mlenv looks through");
  }
  left_ -= bytes + kNode;
}

void LayerParts::add(LayerEntry entry) {
  spend(2 * entry.path.size() + entry.link.size());
  auto& where = entry.kind == "gone" || entry.kind == "opaque" ? marks_ : entries_;
  std::string path = entry.path;
  where.insert_or_assign(std::move(path), std::move(entry));
}

void LayerParts::add_elf(const std::string& path, ElfFile elf) {
  spend(path.size() + bytes_of(elf));
  elves_.insert_or_assign(path, std::move(elf));
}

void LayerParts::add_text(const std::string& path, std::string text) {
  spend(path.size() + text.size());
  texts_.insert_or_assign(path, std::move(text));
}

void LayerParts::forget(const std::string& path) {
  elves_.erase(path);
  texts_.erase(path);
}

void LayerParts::name_firsts() {
  std::map<std::string, std::vector<std::string>> names;  // of files, by the one that has the bytes
  for (const auto& [path, entry] : entries_) {
    if (entry.kind != "same") continue;
    std::string at = entry.link;
    for (int steps = 0; steps < kMostHardLinkSteps; ++steps) {
      const auto next = entries_.find(at);
      if (next == entries_.end() || next->second.kind != "same") break;
      at = next->second.link;
    }
    names[at].push_back(path);
  }
  for (const auto& [owner, others] : names) {
    const auto file = entries_.find(owner);
    if (file == entries_.end() || file->second.kind != "file") continue;
    const std::string& first = std::min(owner, others.front());
    const std::uint64_t bytes = file->second.bytes;
    for (const std::string& path : others) entries_[path] = {"same", path, first, 0};
    if (first == owner) continue;
    entries_[owner] = {"same", owner, first, 0};
    entries_[first] = {"file", first, "", bytes};
    if (auto elf = elves_.extract(owner)) {
      elf.key() = first;
      elves_.insert(std::move(elf));
    }
    if (auto text = texts_.extract(owner)) {
      text.key() = first;
      texts_.insert(std::move(text));
    }
  }
}

LayerFacts LayerParts::finish() {
  name_firsts();
  LayerFacts facts;
  for (auto& [path, mark] : marks_) facts.entries.push_back(std::move(mark));
  for (auto& [path, entry] : entries_) facts.entries.push_back(std::move(entry));
  for (auto& [path, elf] : elves_) facts.elves.push_back({path, std::move(elf)});
  for (auto& [path, text] : texts_) facts.texts.push_back({path, std::move(text)});
  return facts;
}

std::string pack_layer_facts(const LayerFacts& facts) {
  std::string packed{kPackedVersion};
  nlohmann::json::to_cbor(RecordWriter::written(facts), packed);
  return packed;
}

std::optional<LayerFacts> unpack_layer_facts(std::string_view packed) {
  if (!packed.starts_with(kPackedVersion)) return std::nullopt;
  packed.remove_prefix(kPackedVersion.size());
  try {
    const nlohmann::json root = nlohmann::json::from_cbor(packed);
    LayerFacts facts;
    RecordReader(kPacked.schema, kPacked).read(root, "", facts);
    return facts;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace mlenv
