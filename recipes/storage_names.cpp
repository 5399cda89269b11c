#include "recipes/storage_names.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr char kMark = '@';
constexpr std::array<std::string_view, 1> kStorageKeys = {"path"};

/// Letters and digits, and within the name `.`, `_` and `-`.
bool is_storage_name(std::string_view text) {
  constexpr std::size_t kMost = 64;
  const auto plain = [](char one) {
    return is_digit(one) || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z');
  };
  return !text.empty() && text.size() <= kMost && plain(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char one) {
           return plain(one) || one == '.' || one == '_' || one == '-';
         });
}

/// The node that holds the path of one storage; nullptr: it has none.
const YamlNode* path_node(ValueReader& values, const std::string& name, const YamlNode& node) {
  if (node.kind != YamlKind::map) return &node;
  const YamlNode* found = nullptr;
  for (const auto& [key, value] : values.members(node, fmt::format("`{}`", name), kStorageKeys)) {
    found = value;
  }
  if (found == nullptr) {
    values.mistake(node, fmt::format("`{}` does not say where it is: `path: /PATH`", name));
  }
  return found;
}

/// Of `bert` in `@scratch/bert`.
bool stays_within(std::string_view within) {
  return within.empty() || is_clean_relative_path(within);
}

Error unknown_storage(const std::string& name, const StorageNames& known) {
  std::vector<std::string> quoted;
  std::vector<std::string_view> names;
  for (const auto& [one, path] : known) {
    quoted.push_back(fmt::format("`{}`", one));
    names.emplace_back(one);
  }
  Error error =
      usage_error("unknown-storage", "no storage is called `{}`: there {}", name,
                  quoted.empty() ? std::string("is none with a name")
                                 : (quoted.size() == 1 ? "is " : "are ") + join(quoted, ", "));
  if (const std::string_view near = nearest(name, names); !near.empty()) {
    return std::move(error).hint(did_you_mean(fmt::format("@{}", near)));
  }
  return std::move(error).hint(fmt::format(
      "`storage: {{{}: /PATH}}` in config.yaml or in the job.yaml says where it is; a folder that "
      "is called so is `./@{}`",
      name, name));
}

}  // namespace

void read_storage_names(ValueReader& values, const YamlNode& node, StorageNames& into) {
  for (const auto& [name, value] : values.members(node, "`storage`", {})) {
    if (!is_storage_name(name)) {
      values.mistake(*value,
                     fmt::format("`{}` is no name for storage: letters and digits, and within it "
                                 "`.`, `_` and `-`",
                                 name));
      continue;
    }
    const YamlNode* const at = path_node(values, name, *value);
    if (at == nullptr) continue;
    const auto text = values.text(*at, fmt::format("the storage `{}`", name), "/mnt/scratch");
    if (!text) continue;
    if (is_clean_absolute_path(text->text) && text->text != "/" &&
        text->text.find(':') == std::string::npos) {
      into[name] = text->text;
    } else {
      values.mistake(*at, fmt::format("`{}` is no place for storage: an absolute path without `.`, "
                                      "`..`, `:` and a `/` at its end, as in `/mnt/scratch`",
                                      text->text));
    }
  }
}

bool names_storage(std::string_view source) { return source.starts_with(kMark); }

StoragePlace storage_place(std::string_view source, const StorageNames& known) {
  const std::string_view rest = source.substr(1);
  const std::size_t slash = rest.find('/');
  const std::string name{rest.substr(0, slash)};
  std::string_view within = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  if (within.ends_with('/')) within.remove_suffix(1);
  const auto found = known.find(name);
  if (found == known.end()) throw unknown_storage(name, known);
  if (!stays_within(within)) {
    throw usage_error("bad-mount", "`{}` is no folder of the storage `{}`", source, name)
        .hint(fmt::format("`@{}/FOLDER`, without `.`, `..` and empty parts", name));
  }
  const fs::path root = found->second;
  return {name, within.empty() ? root : root / within};
}

}  // namespace mlenv
