// What several cells say alike: once, with those that it holds for.
#include <algorithm>

#include <fmt/core.h>

#include "cli/check_text.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::size_t kMostGroupHosts = 6;

}  // namespace

std::vector<FindingGroup> grouped(const Checked& checked) {
  std::vector<FindingGroup> groups;
  const auto add = [&groups](const Finding& one, const Cell* cell) {
    const auto same_group = [&](const FindingGroup& group) {
      const Finding& first = group.finding;
      return first.rule == one.rule && first.severity == one.severity &&
             first.needed == one.needed && first.remedy == one.remedy && first.title == one.title;
    };
    auto group = std::find_if(groups.begin(), groups.end(), same_group);
    if (group == groups.end()) group = groups.insert(group, {one, {}});
    const auto same = [&](const FindingGroup::Found& found) { return found.what == one.found; };
    auto found = std::find_if(group->found.begin(), group->found.end(), same);
    if (found == group->found.end()) found = group->found.insert(found, {one.found, {}});
    if (cell != nullptr) found->cells.push_back(cell);
  };
  for (const Finding& one : checked.together.findings) add(one, nullptr);
  for (const Cell& cell : checked.cells) {
    for (const Finding& one : cell.verdict.findings) add(one, &cell);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::pair(a.finding.severity, find_rule(a.finding.rule)) <
           std::pair(b.finding.severity, find_rule(b.finding.rule));
  });
  return groups;
}

std::vector<UnknownFact> unknown_facts(const Checked& checked) {
  std::vector<UnknownFact> facts;
  const auto add = [&facts](const Unjudged& one, const Cell* cell) {
    auto fact = std::find_if(facts.begin(), facts.end(), [&](const UnknownFact& known) {
      return known.first.fact == one.fact && known.first.why == one.why &&
             known.first.how == one.how;
    });
    if (fact == facts.end()) fact = facts.insert(fact, {one, {}, {}});
    auto& rules = fact->rules;
    if (std::find(rules.begin(), rules.end(), one.rule) == rules.end()) rules.push_back(one.rule);
    auto& cells = fact->cells;
    if (cell != nullptr && (cells.empty() || cells.back() != cell)) cells.push_back(cell);
  };
  for (const Cell& cell : checked.cells) {
    for (const Unjudged& one : cell.verdict.unjudged) add(one, &cell);
  }
  for (const Unjudged& one : checked.together.unjudged) add(one, nullptr);
  std::stable_sort(facts.begin(), facts.end(), [](const UnknownFact& a, const UnknownFact& b) {
    return find_rule(a.first.rule) < find_rule(b.first.rule);
  });
  return facts;
}

std::string holds_for(const Checked& checked, const std::vector<const Cell*>& cells) {
  std::vector<std::string> texts;
  for (const Subject& subject : checked.subjects) {
    std::vector<std::string> hosts;
    for (const Cell* cell : cells) {
      if (cell->subject == &subject) hosts.push_back(cell->host->name);
    }
    if (hosts.empty()) continue;
    std::string text = listed(hosts, kMostGroupHosts);
    if (checked.subjects.size() > 1) text = fmt::format("{} on {}", subject.shown, text);
    texts.push_back(std::move(text));
  }
  return join(texts, "; ");
}

}  // namespace mlenv::cli
