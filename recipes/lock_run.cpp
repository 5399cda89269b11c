#include "recipes/lock_run.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/text.hpp"

namespace mlenv {

std::string render_run_steps(const std::vector<RunStep>& steps) {
  if (steps.empty()) return {};
  std::string out = "run = [\n";
  for (const RunStep& step : steps) {
    out += fmt::format("  {{ command = {}", toml_text(step.command.text));
    if (step.network) out += ", network = true";
    std::vector<std::string> secrets;
    for (const std::string& id : step.secrets) secrets.push_back(toml_text(id));
    if (!secrets.empty()) out += fmt::format(", secrets = [{}]", join(secrets, ", "));
    out += " },\n";
  }
  return out + "]\n";
}

std::vector<RunStep> read_run_steps(const TomlReader& reader, const TomlValue& settings) {
  std::vector<RunStep> steps;
  const TomlValue* list = reader.optional_member(settings, "run", TomlValue::Kind::list);
  if (list == nullptr) return steps;
  for (const TomlValue& item : list->items) {
    if (item.kind != TomlValue::Kind::table) reader.fail(item, "a step is a table in one line");
    constexpr std::array<std::string_view, 3> kKeys = {"command", "network", "secrets"};
    reader.only(item, kKeys);
    const TomlValue& command = reader.member(item, "command", TomlValue::Kind::text);
    if (command.text.empty() || has_control(command.text, "\t\n")) {
      reader.fail(command, "`command` is empty or holds control characters");
    }
    RunStep step{{command.text},
                 reader.optional_flag(item, "network", false),
                 reader.texts(item, "secrets")};
    if (!std::all_of(step.secrets.begin(), step.secrets.end(), is_secret_id)) {
      reader.fail(*item.find("secrets"), "`secrets` holds what is no name of a secret");
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace mlenv
