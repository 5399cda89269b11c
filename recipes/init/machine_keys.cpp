#include "recipes/init/machine_keys.hpp"

#include <map>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/draft.hpp"
#include "recipes/requirement.hpp"
#include "recipes/steering.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using KeyLists = std::map<std::string, std::vector<std::string>>;

std::vector<std::string> parts_of(std::string_view value) {
  std::vector<std::string> parts;
  for (const std::string_view blank : split(value, ' ')) {
    for (const std::string_view part : split(blank, ',')) {
      if (!part.empty()) parts.emplace_back(part);
    }
  }
  return parts;
}

/// Requirements in the files that the value names; empty where one has more than such lines.
std::vector<std::string> lines_of_files(std::string_view value) {
  std::vector<std::string> lines;
  for (const std::string& path : parts_of(value)) {
    std::string text;
    try {
      text = read_small_file(path, size_limit::kRequirements);
    } catch (const Error&) {
      return {};
    }
    for (std::string_view line : split(text, '\n')) {
      line = trim(line.substr(0, line.find(" #")));
      if (line.empty() || line.starts_with('#')) continue;
      const auto read = parse_requirement(line);
      const auto* one = std::get_if<Requirement>(&read);
      if (one == nullptr || !one->address.empty()) return {};
      lines.push_back(one->str());
    }
  }
  return lines;
}

/// What stands in the recipe for it; empty: nothing can.
std::vector<std::string> items_for(const MachineWord& word) {
  if (word.key == "overrides" || word.key == "constraints" ||
      word.key == "build: {constraints: …}") {
    return lines_of_files(word.value);
  }
  if (word.key == "prerelease: allow") return {"allow"};
  if (word.key == "prerelease") {
    return is_among(prerelease_words(), word.value) ? std::vector{word.value}
                                                    : std::vector<std::string>{};
  }
  if (word.key == "exclude-newer") {
    return is_upload_date(word.value) ? std::vector{word.value} : std::vector<std::string>{};
  }
  if (!word.key.ends_with("-binary") || word.value.empty()) return {};
  const bool all = word.value == "1" || word.value == "true" || word.value == "yes";
  if (all) return {std::string(kAllPackages)};
  std::vector<std::string> names;
  for (const std::string& part : parts_of(word.value)) {
    if (part != kAllPackages && !is_wheel_name(normalise_wheel_name(part))) return {};
    names.push_back(part);
  }
  return names;
}

std::string key_lines(const std::string& key, const std::vector<std::string>& items) {
  const bool build = key.starts_with("build:");
  if (key == "prerelease" || key == "exclude-newer") {
    return fmt::format("{}: {}\n", key, items.front());
  }
  std::string out = build ? "build:\n  constraints:\n" : key + ":\n";
  for (const std::string& item : items) {
    std::string quoted;
    for (const char c : item) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
    out += fmt::format("{}  - \"{}\"\n", build ? "  " : "", quoted);
  }
  return out;
}

}  // namespace

std::string with_machine_keys(std::string recipe, const std::vector<MachineWord>& words) {
  KeyLists lists;
  std::string comments;
  for (const MachineWord& word : words) {
    if (word.key.empty()) continue;  // a recipe has no word for it
    const std::string key = word.key.substr(0, word.key.find(": a"));  // `prerelease: allow`
    const std::string first = key.substr(0, key.find(':'));
    const std::vector<std::string> items = items_for(word);
    if (items.empty() || recipe.find('\n' + first + ':') != std::string::npos) {
      comments += fmt::format("# {}{}: write `{}`\n", word.where,
                              word.value.empty() ? "" : " is " + shown_text(word.value), word.key);
    } else {
      std::vector<std::string>& all = lists[key];
      all.insert(all.end(), items.begin(), items.end());
    }
  }
  if (lists.empty() && comments.empty()) return recipe;
  recipe += "\n# What this machine's settings of uv and pip say; no lock heeds them themselves.\n";
  for (const auto& [key, items] : lists) recipe += key_lines(key, items);
  return recipe + comments;
}

}  // namespace mlenv
