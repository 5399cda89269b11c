#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "recipes/text.hpp"
#include "runner/check/rule_pages.hpp"
#include "runner/check/verdict.hpp"

namespace mlenv::cli {
namespace {

nlohmann::json rule_json(const Rule& rule, bool with_page) {
  nlohmann::json item = {{"rule", rule.id},
                         {"severity", name_of(rule.severity)},
                         {"what", rule.title},
                         {"source", rule.source},
                         {"page", nullptr}};
  if (with_page) item["page"] = rule_page(rule.id);
  return item;
}

const Rule& rule_named(const std::string& id) {
  if (const Rule* found = find_rule(id)) return *found;
  std::vector<std::string> ids;
  for (const Rule& one : rules()) ids.emplace_back(one.id);
  const std::string near = did_you_mean(nearest_word(id, ids));
  throw usage_error("unknown-rule", "there is no rule `{}`", id)
      .hint(near.empty() ? "`mlenv explain` lists them" : near);
}

void list_rules(const Ui& ui) {
  std::size_t width = 0;
  for (const Rule& one : rules()) width = std::max(width, one.id.size());
  for (const Rule& one : rules()) {
    ui.answer(fmt::format("{:<{}}  {:<6}  {}", one.id, width, name_of(one.severity), one.title));
  }
}

int explain_command(const std::string& id, const Ui& ui) {
  const bool one = !id.empty();
  if (ui.options.json) {
    nlohmann::json items = nlohmann::json::array();
    if (one) {
      items.push_back(rule_json(rule_named(id), true));
    } else {
      for (const Rule& rule : rules()) items.push_back(rule_json(rule, false));
    }
    ui.answer(canonical({{"schema", "mlenv.rules/1"}, {"rules", std::move(items)}}));
  } else if (one) {
    std::string_view page = rule_page(rule_named(id).id);
    while (page.ends_with('\n')) page.remove_suffix(1);
    ui.answer(page);
  } else {
    list_rules(ui);
  }
  return 0;
}

}  // namespace

Action declare_explain(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  app.add_option("RULE", *id, "a rule's name, as `mlenv check` says it; else all are listed");
  app.footer("example: mlenv explain driver-too-old");
  return [id](Ui& ui) { return explain_command(*id, ui); };
}

}  // namespace mlenv::cli
