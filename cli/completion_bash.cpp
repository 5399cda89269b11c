// The script is three tables made from the tree, and a fixed part that walks the words up to the
// cursor and looks them up:
//   _mlenv_words COMMAND          sets `commands` and `options`
//   _mlenv_value COMMAND OPTION   sets `kind` to what the option's value is, empty for a flag
//   _mlenv_argument COMMAND N     sets `kind` to what its argument N (from 0) is
// A kind is `:image` and its like, or the choices themselves.
#include "cli/completion.hpp"

#include <fmt/core.h>

#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kBashHead = R"script(# shellcheck shell=bash
# Completes mlenv's command line in bash. Made by `mlenv completion bash`.
)script";

constexpr std::string_view kBashWalk = R"script(
# What may stand where `current` does, as lines.
_mlenv_candidates() {
  case $kind in
    :run) compgen -W "$("$program" runs --names -n 50 2>/dev/null </dev/null)" -- "$current" ;;
    :running | :enterable)
      compgen -W "$("$program" ps --names 2>/dev/null </dev/null)" -- "$current"
      ;;&
    :image | :runnable | :enterable)
      local names
      names=$("$program" images --names 2>/dev/null </dev/null)
      # `:latest` goes without saying until a colon is typed.
      if [[ $current != *:* ]]; then
        names=$(while IFS= read -r name; do printf '%s\n' "${name%:latest}"; done <<<"$names")
      fi
      compgen -W "$names" -- "$current"
      ;;&
    :recipe | :runnable | :enterable)
      compgen -f -X '!*.@(yaml|yml)' -- "$current"
      compgen -d -- "$current"
      ;;
    :file) compgen -f -- "$current" ;;
    :output)
      if [[ $current == *:* ]]; then
        compgen -f -P "${current%%:*}:" -- "${current#*:}"
      else
        compgen -W 'oci: oci-archive: docker-archive:' -- "$current"
      fi
      ;;
    :*) ;;
    *) compgen -W "$kind" -- "$current" ;;
  esac
}

_mlenv() {
  local program=${1/#\~/$HOME} line=${COMP_LINE:0:COMP_POINT} words=() i word blanks shopts
  # Words as they were typed: bash also splits them at `:` and `=`.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    blanks=${line%%[![:blank:]]*}
    line=${line#"$blanks"}
    if [[ $i == "$COMP_CWORD" ]]; then word=$line; fi
    line=${line#"$word"}
    if [[ -n $blanks || $i == 0 ]]; then words+=("$word"); else words[-1]+=$word; fi
  done

  local command='' arguments=0 kind='' options='' commands='' plain=''
  for ((i = 1; i < ${#words[@]} - 1; i++)); do
    word=${words[i]}
    _mlenv_argument "$command" "$arguments"
    if [[ $kind == :rest ]]; then plain=1; fi
    if [[ -z $plain && $word == -- ]]; then
      plain=1
    elif [[ -z $plain && $word == -?* ]]; then
      _mlenv_value "$command" "$word"
      # `--option VALUE`: the value is no argument.
      if [[ -n $kind ]]; then ((i++)); fi
    else
      _mlenv_words "$command"
      if [[ " $commands " == *" $word "* ]]; then command+=${command:+ }$word; else ((arguments++)); fi
    fi
  done

  local current=${words[-1]} typed=${words[-1]} lead='' before=''
  COMPREPLY=()
  kind=''
  if [[ $i == "${#words[@]}" ]]; then
    _mlenv_value "$command" "${words[-2]}"
  else
    _mlenv_argument "$command" "$arguments"
    if [[ $kind == :rest ]]; then plain=1; fi
    _mlenv_words "$command"
    if [[ -z $plain && $current == --*=* ]]; then
      lead=${current%%=*}=
      current=${current#*=}
      _mlenv_value "$command" "${lead%=}"
    elif [[ -z $plain && $current == -* ]]; then
      kind=$options
    elif [[ -n $commands ]]; then
      kind=$commands
    fi
  fi
  if [[ $kind == :job || $kind == :rest ]]; then
    compopt -o bashdefault -o default 2>/dev/null
    return
  fi
  shopts=$(shopt -p extglob)
  shopt -s extglob
  mapfile -t COMPREPLY < <(_mlenv_candidates)
  $shopts
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *: ]]; then compopt -o nospace 2>/dev/null; fi
  # Names of files get quotes and slashes from bash; a name of an image among them must not.
  case $kind in
    :recipe | :file | :runnable | :enterable | :output)
      plain=1
      for word in "${COMPREPLY[@]}"; do
        if [[ $kind == :output ]]; then word=${word#*:}; fi
        if [[ ! -e $word && $word != '~'* ]]; then plain=''; fi
      done
      if [[ -n $plain ]]; then compopt -o filenames 2>/dev/null; fi
      ;;
  esac
  # Of a word that bash split only what is after the last split counts.
  for word in : =; do
    if [[ $COMP_WORDBREAKS == *"$word"* && $typed == *"$word"* ]]; then
      blanks=${typed%"${typed##*"$word"}"}
      if ((${#blanks} > ${#before})); then before=$blanks; fi
    fi
  done
  COMPREPLY=("${COMPREPLY[@]/#/"$lead"}")
  COMPREPLY=("${COMPREPLY[@]#"$before"}")
}

complete -F _mlenv mlenv
)script";

std::string kind_of(WordKind kind, const std::vector<std::string>& choices,
                    const std::string& commands) {
  switch (kind) {
    case WordKind::choice:
      return join(choices, " ");
    case WordKind::command:
      return commands;
    case WordKind::file:
      return ":file";
    case WordKind::recipe:
      return ":recipe";
    case WordKind::image:
      return ":image";
    case WordKind::runnable:
      return ":runnable";
    case WordKind::run:
      return ":run";
    case WordKind::running:
      return ":running";
    case WordKind::enterable:
      return ":enterable";
    case WordKind::output:
      return ":output";
    case WordKind::job:
      return ":job";
    case WordKind::text:
      break;
  }
  return ":text";
}

std::string command_names(const ShownCommand& command) {
  return join(command.names_of_commands(), " ");
}

std::string words_table(const ShownCommand& tree) {
  std::string text = "\n_mlenv_words() {\n  case $1 in\n";
  for (const ShownCommand* command : all_commands(tree)) {
    std::vector<std::string> options;
    for (const ShownOption& option : options_of(tree, *command)) {
      options.insert(options.end(), option.names.begin(), option.names.end());
    }
    text += fmt::format("    {})\n      commands={}\n      options={}\n      ;;\n",
                        single_quoted(command->name()), single_quoted(command_names(*command)),
                        single_quoted(join(options, " ")));
  }
  return text + "  esac\n}\n";
}

std::string values_table(const ShownCommand& tree) {
  std::string text = "\n_mlenv_value() {\n  case \"$1 $2\" in\n";
  for (const ShownCommand* command : all_commands(tree)) {
    for (const ShownOption& option : command->options) {
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        // mlenv's own hold for every command.
        patterns.push_back(command->path.empty() ? "*" + single_quoted(" " + name)
                                                 : single_quoted(command->name() + " " + name));
      }
      text += fmt::format("    {}) kind={} ;;\n", join(patterns, " | "),
                          single_quoted(kind_of(option.kind, option.choices, command_names(tree))));
    }
  }
  return text + "    *) kind='' ;;\n  esac\n}\n";
}

std::string arguments_table(const ShownCommand& tree) {
  std::string text = "\n_mlenv_argument() {\n  case \"$1 $2\" in\n";
  for (const ShownCommand* command : all_commands(tree)) {
    for (std::size_t i = 0; i < command->arguments.size(); ++i) {
      const ShownArgument& argument = command->arguments[i];
      const std::string name = command->name();
      const std::string kind =
          single_quoted(kind_of(argument.kind, argument.choices, command_names(tree)));
      const bool job = argument.kind == WordKind::job;
      // What follows a job's first word is its own, options too.
      if (!argument.repeats || job) {
        text +=
            fmt::format("    {}) kind={} ;;\n", single_quoted(fmt::format("{} {}", name, i)), kind);
      }
      if (argument.repeats) {
        text += fmt::format("    {}' '*) kind={} ;;\n", single_quoted(name), job ? ":rest" : kind);
      }
    }
  }
  return text + "    *) kind=:text ;;\n  esac\n}\n";
}

}  // namespace

std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string bash_completion(const ShownCommand& tree) {
  std::string text{kBashHead};
  text += words_table(tree);
  text += values_table(tree);
  text += arguments_table(tree);
  text += kBashWalk;
  return text;
}

}  // namespace mlenv::cli
