// The script is a function a command, each a call of zsh's own `_arguments` (zshcompsys(1)).
#include <algorithm>

#include <fmt/core.h>

#include "cli/completion.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kZshHead = R"script(#compdef mlenv
# Completes mlenv's command line in zsh. Made by `mlenv completion zsh`.

__mlenv_images() {
  local -a names
  names=(${(f)"$(_call_program images ${(q)program} images --names </dev/null)"})
  # `:latest` goes without saying until a colon is typed.
  [[ $PREFIX == *:* ]] || names=(${names%:latest})
  _wanted images expl image compadd -a names
}

__mlenv_recipes() {
  _alternative 'recipes:recipe:_path_files -g "*.(yaml|yml)(-.)"' 'folders:folder:_path_files -/'
}

__mlenv_runnable() {
  _alternative 'images:image:__mlenv_images' 'recipes:recipe:__mlenv_recipes'
}

__mlenv_runs() {
  local -a names
  names=(${(f)"$(_call_program runs ${(q)program} runs --names -n 50 </dev/null)"})
  _wanted runs expl run compadd -a names
}

__mlenv_running() {
  local -a names
  names=(${(f)"$(_call_program runs ${(q)program} ps --names </dev/null)"})
  _wanted runs expl run compadd -a names
}

__mlenv_enterable() {
  _alternative 'runs:run:__mlenv_running' 'images:image:__mlenv_images' 'recipes:recipe:__mlenv_recipes'
}

__mlenv_outputs() {
  if compset -P '*:'; then
    _files
  else
    _wanted forms expl form compadd -S '' oci: oci-archive: docker-archive:
  fi
}
)script";

/// `mlenv`, `mlenv_store_verify`: with a `_` in front the function's name.
std::string function_of(const ShownCommand& command) {
  return "_mlenv" + (command.path.empty() ? "" : "_" + join(command.path, "_"));
}

/// Within `[…]` or between colons of a specification.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(WordKind kind, const std::vector<std::string>& choices) {
  switch (kind) {
    case WordKind::choice:
      return "(" + join(choices, " ") + ")";
    case WordKind::command:
      return "__mlenv_commands";
    case WordKind::file:
    case WordKind::job:
      return "_files";
    case WordKind::recipe:
      return "__mlenv_recipes";
    case WordKind::image:
      return "__mlenv_images";
    case WordKind::runnable:
      return "__mlenv_runnable";
    case WordKind::run:
      return "__mlenv_runs";
    case WordKind::running:
      return "__mlenv_running";
    case WordKind::enterable:
      return "__mlenv_enterable";
    case WordKind::output:
      return "__mlenv_outputs";
    case WordKind::text:
      break;
  }
  return " ";
}

/// One for each of its names, which exclude each other unless it may be given again.
std::vector<std::string> specifications(const ShownOption& option) {
  const bool ends = option.names.back() == "--help" || tells_version(option);
  std::string others = ends                       ? "(- : *)"
                       : option.repeats           ? "*"
                       : option.names.size() == 1 ? ""
                                                  : "(" + join(option.names, " ") + ")";
  std::vector<std::string> found;
  for (const std::string& name : option.names) {
    std::string text = others + name;
    if (!option.value.empty()) text += name.starts_with("--") ? "=" : "+";
    text += "[" + escaped(option.meaning) + "]";
    if (!option.value.empty()) {
      text += ":" + escaped(option.value) + ":" + zsh_action(option.kind, option.choices);
    }
    found.push_back(single_quoted(text));
  }
  return found;
}

std::string specification(const ShownArgument& argument) {
  std::string text = argument.kind == WordKind::job ? "(-)*"  // its options are its own
                     : argument.repeats             ? "*"
                     : argument.required            ? ""
                                                    : ":";
  text += ":" + escaped(argument.name) + ":" + zsh_action(argument.kind, argument.choices);
  return single_quoted(text);
}

/// `'lock:resolve a recipe into a lock file'`, a line each.
std::string described_commands(const ShownCommand& command) {
  std::string text;
  for (const ShownCommand& one : command.commands) {
    text += "    " + single_quoted(one.path.back() + ":" + escaped(one.purpose)) + "\n";
  }
  return text;
}

std::string function(const ShownCommand& tree, const ShownCommand& command) {
  const std::string name = function_of(command);
  const bool top = command.path.empty();
  std::string text;
  if (!command.commands.empty()) {
    text += fmt::format(
        "\n_{}_commands() {{\n  local -a commands=(\n{}  )\n"
        "  _describe -t commands command commands\n}}\n",
        name, described_commands(command));
  }
  text += fmt::format(
      "\n{}() {{\n  local curcontext=$curcontext state line ret=1\n"
      "  typeset -A opt_args\n{}  _arguments -C -s -S",
      name, top ? "  local program=$words[1]\n" : "");
  for (const ShownOption& option : options_of(tree, command)) {
    for (const std::string& one : specifications(option)) text += " \\\n    " + one;
  }
  for (const ShownArgument& argument : command.arguments) {
    text += " \\\n    " + specification(argument);
  }
  if (command.commands.empty()) return text + "\n}\n";
  text += fmt::format(
      " \\\n    '(-): :_{}_commands' \\\n    '(-)*:: :->words' && ret=0\n"
      "  if [[ $state == words ]]; then\n    case $words[1] in\n",
      name);
  for (const ShownCommand& one : command.commands) {
    text += fmt::format("      {}) {} && ret=0 ;;\n", one.path.back(), function_of(one));
  }
  return text + "    esac\n  fi\n  return ret\n}\n";
}

}  // namespace

std::string zsh_completion(const ShownCommand& tree) {
  std::string text{kZshHead};
  for (const ShownCommand* command : all_commands(tree)) text += function(tree, *command);
  // In a folder of $fpath the file is the function; sourced, it says what it completes.
  text +=
      "\nif [[ $funcstack[1] == _mlenv ]]; then\n  _mlenv \"$@\"\nelse\n  compdef _mlenv "
      "mlenv\nfi\n";
  return text;
}

}  // namespace mlenv::cli
