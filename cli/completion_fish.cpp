// The script is two tables made from the tree (which words lead to which command, which options
// take a word), a function that walks the words up to the cursor, and a `complete` line for each
// command, option and argument under the condition that the walk came there.
#include <fmt/core.h>

#include "cli/completion.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kFishHead =
    R"script(# Completes mlenv's command line in fish. Made by `mlenv completion fish`.
)script";

constexpr std::string_view kFishWalk = R"script(
# Prints the command that the words lead to, then how many arguments it has; `--` in front where no
# options follow.
function __mlenv_walk
    set -l words (commandline -opc)
    set -e words[1]
    set -l path
    set -l arguments 0
    set -l plain
    set -l skip
    for word in $words
        if set -q skip[1]
            set -e skip
            set skip
        else if test "$word" = -- -a -z "$plain"
            set plain --
        else if string match -q -- '-?*' $word; and test -z "$plain"
            __mlenv_takes_word "$path" $word; and set skip 1
        else if __mlenv_is_command (string join ' ' $path $word)
            set -a path $word
        else
            set arguments (math $arguments + 1)
            if test $arguments -gt (__mlenv_job "$path")
                set plain --
            end
        end
    end
    echo $plain
    string join ' ' -- $path ''
    echo $arguments
end

# __mlenv_at COMMAND [ARGUMENTS [ARGUMENTS or more]]
function __mlenv_at
    set -l at (__mlenv_walk)
    test (string trim -- "$at[2]") = "$argv[1]"; or return 1
    set -q argv[2]; or return 0
    if set -q argv[3]
        test $at[3] -ge $argv[2]
    else
        test $at[3] -eq $argv[2]
    end
end

# Whether an option may stand here, of a certain command.
function __mlenv_option_at
    set -l at (__mlenv_walk)
    test -z "$at[1]"; or return 1
    set -q argv[1]; or return 0
    test (string trim -- "$at[2]") = "$argv[1]"
end

function __mlenv_images
    set -l program (commandline -opc)[1]
    set -l names ($program images --names 2>/dev/null </dev/null)
    # `:latest` goes without saying until a colon is typed.
    if string match -qv '*:*' -- (commandline -ct)
        set names (string replace -r ':latest$' '' -- $names)
    end
    printf '%s\timage\n' $names
end

function __mlenv_runs
    set -l program (commandline -opc)[1]
    printf '%s\trun\n' ($program runs --names -n 50 2>/dev/null </dev/null)
end

function __mlenv_running
    set -l program (commandline -opc)[1]
    printf '%s\trun\n' ($program ps --names 2>/dev/null </dev/null)
end

function __mlenv_recipes
    __fish_complete_path (commandline -ct) | string match -r '^[^\t]*(?:\.ya?ml|/)(?:\t.*)?$'
end

function __mlenv_outputs
    set -l word (commandline -ct | string replace -r '^--[a-z]+=' '')
    set -l form (string match -r '^[a-z-]+:' -- $word)
    if test -n "$form"
        printf "$form%s\n" (__fish_complete_path (string replace -- $form '' $word))
    else
        printf '%s\n' oci: oci-archive: docker-archive:
    end
end

complete -c mlenv -f
)script";

/// What completes the word, as an argument of `complete`; empty for a text.
std::string fish_action(WordKind kind, const std::vector<std::string>& choices) {
  switch (kind) {
    case WordKind::choice:
      return " -a " + single_quoted(join(choices, " "));
    case WordKind::command:
    case WordKind::text:
      break;
    case WordKind::file:
    case WordKind::job:
      return " -F";
    case WordKind::recipe:
      return " -k -a '(__mlenv_recipes)'";
    case WordKind::image:
      return " -a '(__mlenv_images)'";
    case WordKind::runnable:
      return " -a '(__mlenv_images; __mlenv_recipes)'";
    case WordKind::run:
      return " -a '(__mlenv_runs)'";
    case WordKind::running:
      return " -a '(__mlenv_running)'";
    case WordKind::enterable:
      return " -a '(__mlenv_running; __mlenv_images; __mlenv_recipes)'";
    case WordKind::output:
      return " -a '(__mlenv_outputs)'";
  }
  return {};
}

/// fish reads `\'` in single quotes.
std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string tables(const ShownCommand& tree) {
  std::string commands = "\nfunction __mlenv_is_command\n    contains -- \"$argv[1]\"";
  std::string takes = "\nfunction __mlenv_takes_word\n    contains -- $argv[2]";
  std::string own = "\nfunction __mlenv_job\n    switch \"$argv[1]\"\n";
  std::string by_command;
  for (const ShownCommand* command : all_commands(tree)) {
    const std::string name = command->name();
    if (!name.empty()) commands += " " + fish_quoted(name);
    std::string options;
    for (const ShownOption& option : command->options) {
      if (!option.value.empty()) options += " " + join(option.names, " ");
    }
    if (name.empty()) {
      takes += options + "; and return 0\n    switch \"$argv[1]\"\n";
    } else if (!options.empty()) {
      by_command += fmt::format("        case {}\n            contains -- $argv[2]{}\n",
                                fish_quoted(name), options);
    }
    for (std::size_t i = 0; i < command->arguments.size(); ++i) {
      if (command->arguments[i].kind != WordKind::job) continue;
      own += fmt::format("        case {}\n            echo {}\n", fish_quoted(name), i);
    }
  }
  return commands + "\nend\n" + takes + by_command +
         "        case '*'\n            false\n    end\nend\n"
         "\n# After how many arguments all words are another program's." +
         own + "        case '*'\n            echo 1000000\n    end\nend\n";
}

std::string option_line(const ShownCommand& command, const ShownOption& option) {
  std::string text = "complete -c mlenv";
  const bool everywhere = command.path.empty() && !tells_version(option);
  text += everywhere ? " -n __mlenv_option_at"
                     : fmt::format(" -n \"__mlenv_option_at {}\"", fish_quoted(command.name()));
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.value.empty()) {
    text += option.kind == WordKind::file ? " -r" : " -x";  // x: without names of files
    text += fish_action(option.kind, option.choices);
  }
  return text + " -d " + fish_quoted(option.meaning) + "\n";
}

std::string argument_line(const ShownCommand& tree, const ShownCommand& command, std::size_t at) {
  const ShownArgument& argument = command.arguments[at];
  std::string action = fish_action(argument.kind, argument.choices);
  if (argument.kind == WordKind::command) {
    action = " -a " + fish_quoted(join(tree.names_of_commands(), " "));
  }
  if (action.empty()) return {};
  return fmt::format("complete -c mlenv -n \"__mlenv_at {} {}{}\"{}\n", fish_quoted(command.name()),
                     at, argument.repeats ? " more" : "", action);
}

}  // namespace

std::string fish_completion(const ShownCommand& tree) {
  std::string text{kFishHead};
  text += tables(tree);
  text += kFishWalk;
  for (const ShownCommand* command : all_commands(tree)) {
    text += '\n';
    for (const ShownCommand& one : command->commands) {
      text += fmt::format("complete -c mlenv -n \"__mlenv_at {}\" -a {} -d {}\n",
                          fish_quoted(command->name()), one.path.back(), fish_quoted(one.purpose));
    }
    for (const ShownOption& option : command->options) text += option_line(*command, option);
    for (std::size_t i = 0; i < command->arguments.size(); ++i) {
      text += argument_line(tree, *command, i);
    }
  }
  return text;
}

}  // namespace mlenv::cli
