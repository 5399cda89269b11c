#include "cli/man_page.hpp"

#include <fmt/core.h>

#include "cli/settings.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

/// As roff prints it: no character of it is a command or becomes a typographic one.
std::string roff(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = take_character(text, at).value_or(U'?');
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '`') {
      result += "\\(ga";
    } else if (c == '\'') {
      result += "\\(aq";
    } else if (c == '~') {
      result += "\\(ti";
    } else if (c == '^') {
      result += "\\(ha";
    } else if (c == '"') {
      result += "\\(dq";
    } else if (c >= 0x80) {
      result += fmt::format("\\[u{:04X}]", static_cast<unsigned>(c));
    } else {
      result += static_cast<char>(c);
    }
  }
  return result;
}

/// A line of text, whatever it begins with.
std::string line(std::string_view text) { return "\\&" + roff(text) + "\n"; }
std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string section(std::string_view title) { return fmt::format(".SH {}\n", title); }

std::string entry(const std::string& tag, std::string_view meaning) {
  return ".TP\n" + tag + "\n" + line(meaning);
}

std::string tag_of(const ShownOption& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + bold(name);
  return option.value.empty() ? text : text + " " + italic(option.value);
}

std::string meaning_of(const ShownOption& option) {
  if (option.choices.empty()) return option.meaning;
  return option.meaning + ": " + join(option.choices, ", ");
}

std::string meaning_of(const ShownArgument& argument) {
  std::string text = argument.meaning;
  if (!argument.choices.empty()) text += ": " + join(argument.choices, ", ");
  if (!argument.by_default.empty()) text += "; by default " + argument.by_default;
  return text;
}

std::string entries(const std::vector<ShownOption>& options) {
  std::string text;
  for (const ShownOption& option : options) text += entry(tag_of(option), meaning_of(option));
  return text;
}

std::string entries(const std::vector<ShownArgument>& arguments) {
  std::string text;
  for (const ShownArgument& argument : arguments) {
    text += entry(italic(argument.name), meaning_of(argument));
  }
  return text;
}

std::string command_line(const ShownCommand& command) {
  return command.path.empty() ? "mlenv" : "mlenv " + command.name();
}

std::string synopsis(const ShownCommand& command) {
  std::string text = bold(command_line(command)) + " [" + italic("OPTION") + "]...";
  for (const ShownArgument& argument : command.arguments) {
    std::string word = italic(argument.name) + (argument.repeats ? "..." : "");
    text += " " + (argument.required ? word : "[" + word + "]");
  }
  if (!command.commands.empty()) text += " " + italic("COMMAND");
  return text + "\n";
}

std::string page_name(const ShownCommand& command) {
  return command.path.empty() ? "mlenv" : "mlenv-" + join(command.path, "-");
}

std::string head(const ShownCommand& command) {
  std::string title = page_name(command);
  for (char& c : title) {
    if (is_lower(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  // mlenv's own purpose begins with its name, as the help wants it.
  constexpr std::string_view kOwnName = "mlenv: ";
  std::string_view purpose = command.purpose;
  if (purpose.starts_with(kOwnName)) purpose.remove_prefix(kOwnName.size());
  std::string text =
      fmt::format(".TH {} 1 \"\" \"mlenv {}\" \"mlenv manual\"\n", roff(title), MLENV_VERSION);
  text += section("NAME") + roff(page_name(command)) + " \\- " + roff(purpose) + "\n";
  text += section("SYNOPSIS") + synopsis(command);
  for (const ShownCommand& one : command.commands) {
    if (!command.path.empty()) text += ".br\n" + synopsis(one);
  }
  return text;
}

std::string examples(const ShownCommand& command) {
  if (command.example.empty()) return {};
  return section("EXAMPLES") + ".nf\n" + line(command.example) + ".fi\n";
}

std::string statuses(const ShownCommand& command) {
  std::string text = section("EXIT STATUS");
  if (command.name() == "run") {
    return text + line(
                      "The status of the command that was run; 125 for every failure of mlenv's "
                      "own.");
  }
  text += entry("0", "done, or the answer is yes");
  text += entry("1", "failed");
  text += entry("2", "wrong usage, or a wrong recipe");
  text += entry("3", "the answer is no: nothing fits, or something differs");
  return text + entry("70", "a bug in mlenv");
}

std::string also(const ShownCommand& tree, const ShownCommand& page) {
  std::string text;
  if (!page.path.empty()) text = ".BR mlenv (1)";
  for (const ShownCommand& one : tree.commands) {
    if (!page.path.empty()) break;
    text += (text.empty() ? "" : " ,\n") + fmt::format(".BR {} (1)", roff(page_name(one)));
  }
  return section("SEE ALSO") + text + "\n";
}

ManPage top_page(const ShownCommand& tree) {
  std::string text = head(tree);
  text += section("COMMANDS");
  for (const ShownCommand& one : tree.commands) {
    text += entry(bold(one.name()), one.purpose);
  }
  text += section("OPTIONS") + entries(tree.options) + statuses(tree);
  text += section("ENVIRONMENT");
  for (const Variable& one : variables()) text += entry(bold(one.name), one.meaning);
  return {page_name(tree), text + examples(tree) + also(tree, tree)};
}

ManPage command_page(const ShownCommand& tree, const ShownCommand& command) {
  std::string text = head(command);
  if (!command.arguments.empty()) text += section("ARGUMENTS") + entries(command.arguments);
  text += section("OPTIONS") + entries(command.options);
  for (const ShownCommand& one : command.commands) {
    text += section(fmt::format("COMMAND {}", roff(one.path.back())));
    text += line(one.purpose) + entries(one.arguments) + entries(one.options);
  }
  text += section("GLOBAL OPTIONS");
  text += "Of every command; described in\n.BR mlenv (1).\n.PP\n";
  std::string names;
  for (const ShownOption& option : tree.options) {
    if (option.names.front() == "-h" || tells_version(option)) continue;
    names += (names.empty() ? "" : ", ") + tag_of(option);
  }
  text += names + "\n" + statuses(command) + examples(command);
  return {page_name(command), text + also(tree, command)};
}

}  // namespace

std::vector<ManPage> man_pages(const ShownCommand& tree) {
  std::vector<ManPage> pages{top_page(tree)};
  for (const ShownCommand& command : tree.commands) pages.push_back(command_page(tree, command));
  return pages;
}

}  // namespace mlenv::cli
