#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "cli/check_suggest.hpp"
#include "cli/check_text.hpp"
#include "cli/lines.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::size_t kMostVersions = 12;
constexpr std::size_t kMostNamedHosts = 6;

void add_versions(Lines& out, const Suggestion& suggestion) {
  if (suggestion.versions.empty()) return;
  out.emplace_back("  versions");
  // What is in both comes first: the framework among it.
  Lines lines = suggestion.versions;
  std::stable_partition(lines.begin(), lines.end(), [](const std::string& line) {
    return !line.starts_with('+') && !line.starts_with('-');
  });
  const std::size_t shown = std::min(lines.size(), kMostVersions);
  for (std::size_t i = 0; i < shown; ++i) out.push_back("    " + printable(lines[i]));
  if (shown < lines.size()) out.push_back(fmt::format("    and {} more", lines.size() - shown));
}

/// What is still to be said of the changed recipe: findings, each with where.
void add_rest(Lines& out, const Suggestion& suggestion) {
  const auto groups = grouped(suggestion.checked);
  if (groups.empty()) return;
  out.emplace_back("  remains");
  for (const FindingGroup& group : groups) {
    const Finding& one = group.finding;
    for (const FindingGroup::Found& found : group.found) {
      const std::string where =
          suggestion.checked.cells.size() > 1 && !found.cells.empty()
              ? fmt::format(" ({})", holds_for(suggestion.checked, found.cells))
              : std::string{};
      out.push_back(fmt::format("    {:<8}{}: needed {}, found {}{}", name_of(one.severity),
                                one.rule, printable(one.needed), printable(found.what),
                                printable(where)));
    }
  }
}

std::string remedy_words(const Suggestion::Remedy& remedy) {
  if (remedy.driver.empty() && remedy.change.empty()) {
    return "no other driver makes it run there: see what there is to do above";
  }
  if (remedy.driver.empty()) return fmt::format("a recipe of its own, with {}", remedy.change);
  std::string driver = fmt::format("install driver {} or newer", remedy.driver);
  if (remedy.change.empty()) return driver;
  return fmt::format("{}, and take {}", driver, remedy.change);
}

void add_remedies(Lines& out, const Suggestion& suggestion) {
  if (suggestion.remedies.empty()) return;
  out.emplace_back();
  out.emplace_back(suggestion.recipe ? "what it does not run on" : "what it would need");
  for (const Suggestion::Remedy& one : suggestion.remedies) {
    out.push_back(fmt::format("  {}: {}", printable(one.host), printable(remedy_words(one))));
  }
  const Lines& gpus = suggestion.remedies.front().gpus;
  if (gpus.empty()) return;
  out.push_back(fmt::format("  it has code for GPUs of compute capability {}", join(gpus, ", ")));
}

std::string places(const Suggestion& suggestion) {
  Lines hosts;
  for (const Cell& cell : suggestion.checked.cells) {
    const bool is_left =
        std::any_of(suggestion.remedies.begin(), suggestion.remedies.end(),
                    [&](const Suggestion::Remedy& one) { return one.host == cell.host->name; });
    if (!is_left) hosts.push_back(cell.host->name);
  }
  return listed(hosts, kMostNamedHosts);
}

}  // namespace

std::vector<std::string> suggestion_text(const Suggestion& suggestion) {
  if (!suggestion.needed) return {"", "nothing has to be changed"};
  Lines out = {""};
  if (suggestion.recipe) {
    out.push_back(fmt::format("suggested: {}, which runs on {}", printable(suggestion.build),
                              printable(places(suggestion))));
    for (const std::string& line : suggestion.diff) out.push_back("  " + printable(line));
    add_versions(out, suggestion);
    add_rest(out, suggestion);
  } else {
    out.emplace_back("nothing to suggest: no change of a recipe helps");
    if (!suggestion.tried.empty()) out.back() = "nothing to suggest: no build that was tried runs";
  }
  for (const Suggestion::Tried& one : suggestion.tried) {
    out.push_back(fmt::format("  tried {}: {}", printable(one.what), printable(one.why)));
  }
  add_remedies(out, suggestion);
  return out;
}

nlohmann::json suggestion_json(const Suggestion& suggestion) {
  using nlohmann::json;
  const auto text = [](const std::string& value) {
    return value.empty() ? json(nullptr) : json(value);
  };
  json tried = json::array();
  for (const Suggestion::Tried& one : suggestion.tried) {
    tried.push_back({{"what", one.what}, {"why", one.why}});
  }
  json remedies = json::array();
  for (const Suggestion::Remedy& one : suggestion.remedies) {
    remedies.push_back({{"host", one.host},
                        {"driver", text(one.driver)},
                        {"change", text(one.change)},
                        {"gpus", one.gpus}});
  }
  json out = {{"needed", suggestion.needed},
              {"recipe", nullptr},
              {"lock", nullptr},
              {"change", text(suggestion.change)},
              {"build", text(suggestion.build)},
              {"diff", suggestion.diff},
              {"versions", suggestion.versions},
              {"verdicts", json::array()},
              {"tried", std::move(tried)},
              {"remedies", std::move(remedies)}};
  if (suggestion.recipe) {
    out["recipe"] = suggestion.recipe->path.string();
    out["lock"] = lock_path(suggestion.recipe->path).string();
    out["verdicts"] = check_json(suggestion.checked)["verdicts"];
  }
  return out;
}

}  // namespace mlenv::cli
