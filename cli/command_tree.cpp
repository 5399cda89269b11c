#include "cli/command_tree.hpp"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>

#include "cli/usage.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr const char* kKind = "kind";
constexpr std::string_view kExample = "example: ";

struct Named {
  WordKind kind;
  const char* name;
};
constexpr std::array kKinds{
    Named{WordKind::command, "command"},
    Named{WordKind::file, "file"},
    Named{WordKind::recipe, "recipe"},
    Named{WordKind::image, "image"},
    Named{WordKind::runnable, "runnable"},
    Named{WordKind::output, "output"},
    Named{WordKind::run, "run"},
    Named{WordKind::running, "running"},
    Named{WordKind::enterable, "enterable"},
    Named{WordKind::job, "job"},
};

/// Description of the option's validator of that name; empty without one.
std::string noted(CLI::Option& option, const char* name) {
  try {
    CLI::Validator copy = *option.get_validator(name);
    return copy.active(true).get_description();
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

std::vector<std::string> choices_of(CLI::Option& option) {
  const std::string list = noted(option, kChoices);  // `{auto,always,never}`
  if (list.size() < 2) return {};
  const std::vector<std::string_view> found =
      split(std::string_view(list).substr(1, list.size() - 2), ',');
  return {found.begin(), found.end()};
}

/// Of options and arguments alike.
template <typename Shown>
void describe(CLI::Option& option, Shown& shown) {
  shown.meaning = option.get_description();
  shown.choices = choices_of(option);
  if (!shown.choices.empty()) shown.kind = WordKind::choice;
  const std::string kind = noted(option, kKind);
  for (const Named& one : kKinds) {
    if (one.name == kind) shown.kind = one.kind;
  }
}

ShownOption shown_option(CLI::Option& option) {
  ShownOption shown;
  for (const std::string& name : option.get_snames()) shown.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) shown.names.push_back("--" + name);
  if (option.get_items_expected_max() != 0) {
    const std::string type = option.get_type_name();
    shown.value = type.substr(0, type.find(':'));
    shown.repeats = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  }
  describe(option, shown);
  return shown;
}

ShownArgument shown_argument(CLI::Option& option) {
  ShownArgument shown;
  shown.name = option.get_name(true);
  shown.by_default = option.get_default_str();
  shown.required = option.get_required();
  shown.repeats = option.get_items_expected_max() > 1;
  describe(option, shown);
  return shown;
}

ShownCommand shown_command(CLI::App& app, std::vector<std::string> path) {
  ShownCommand shown;
  shown.purpose = app.get_description();
  const std::string footer = app.get_footer();
  if (footer.starts_with(kExample)) shown.example = footer.substr(kExample.size());
  for (CLI::Option* option : app.get_options({})) {
    if (option->get_group().empty()) continue;
    if (option->get_positional()) {
      shown.arguments.push_back(shown_argument(*option));
    } else {
      shown.options.push_back(shown_option(*option));
    }
  }
  for (CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;
    std::vector<std::string> below = path;
    below.push_back(command->get_name());
    shown.commands.push_back(shown_command(*command, std::move(below)));
  }
  shown.path = std::move(path);
  return shown;
}

bool shares_name(const ShownOption& a, const ShownOption& b) {
  return std::any_of(a.names.begin(), a.names.end(), [&](const std::string& name) {
    return std::find(b.names.begin(), b.names.end(), name) != b.names.end();
  });
}

}  // namespace

std::string ShownCommand::name() const { return join(path, " "); }

std::vector<std::string> ShownCommand::names_of_commands() const {
  std::vector<std::string> names;
  for (const ShownCommand& one : commands) names.push_back(one.path.back());
  return names;
}

bool tells_version(const ShownOption& option) { return option.names.back() == "--version"; }

ShownCommand command_tree(CLI::App& top) { return shown_command(top, {}); }

void take_word_of(CLI::Option* option, WordKind kind) {
  for (const Named& one : kKinds) {
    if (one.kind != kind) continue;
    CLI::Validator note([](const std::string&) { return std::string{}; }, one.name, kKind);
    option->check(note.active(false));  // an inactive one is neither run nor shown
  }
}

std::vector<const ShownCommand*> all_commands(const ShownCommand& tree) {
  std::vector<const ShownCommand*> found{&tree};
  for (const ShownCommand& command : tree.commands) {
    const std::vector<const ShownCommand*> below = all_commands(command);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::vector<ShownOption> options_of(const ShownCommand& tree, const ShownCommand& command) {
  std::vector<ShownOption> found = command.options;
  std::vector<const ShownCommand*> around;
  const ShownCommand* at = &tree;
  for (const std::string& word : command.path) {
    around.push_back(at);
    const auto next =
        std::find_if(at->commands.begin(), at->commands.end(),
                     [&](const ShownCommand& one) { return one.path.back() == word; });
    if (next == at->commands.end()) break;
    at = &*next;
  }
  std::reverse(around.begin(), around.end());
  for (const ShownCommand* outer : around) {
    for (const ShownOption& option : outer->options) {
      if (tells_version(option)) continue;
      const bool known = std::any_of(found.begin(), found.end(), [&](const ShownOption& one) {
        return shares_name(one, option);
      });
      if (!known) found.push_back(option);
    }
  }
  return found;
}

}  // namespace mlenv::cli
