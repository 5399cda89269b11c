#include "cli/usage.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/guessed_words.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) {
    const bool hidden = command->get_group().empty();
    if (!hidden) names.push_back(command->get_name());
  }
  return names;
}

/// Its own, and those of the commands around it.
const CLI::Option* find_option(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

std::vector<std::string> names_of_options(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  return names;
}

bool takes_word(const CLI::Option& option) { return option.get_items_expected_max() != 0; }

Error unknown_option(const CLI::App& app, const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string plain = word.substr(is_long ? 2 : 1);
  std::string near;
  if (!is_long && plain.size() > 1 && find_option(&app, "-" + word) != nullptr) {
    near = plain;
  } else if (is_long) {
    near = nearest_word(plain, names_of_options(&app));
  }
  const std::string command = command_line_of(app);
  const bool runs = app.get_option_no_throw("--volume") != nullptr;
  if (const std::string_view meant = meant_by_option(word); runs && !meant.empty()) {
    return usage_error("usage", "there is no option `{}` of `{}`", word, command)
        .hint(std::string(meant));
  }
  return usage_error("usage", "there is no option `{}` of `{}`{}", word, command,
                     near.empty() ? "" : "; " + did_you_mean("--" + near))
      .hint(fmt::format("see `{} --help`", command));
}

/// Goes through the words as the parser does, up to the first that cannot be.
class Walk {
 public:
  Walk(const CLI::App& app, const std::vector<std::string>& words) : at_(&app), words_(words) {}

  std::optional<Error> first_mistake() {
    for (; next_ < words_.size(); ++next_) {
      const std::string& word = words_[next_];
      if (word == "--") break;
      const bool is_option = word.size() > 1 && word.front() == '-';
      std::optional<Error> mistake = is_option ? option(word) : plain(word);
      if (mistake) return mistake;
    }
    return std::nullopt;
  }

  /// The command that the words lead to.
  const CLI::App& command() const { return *at_; }

 private:
  std::optional<Error> option(const std::string& word) {
    return word.starts_with("--") ? long_option(word) : short_options(word);
  }

  std::optional<Error> long_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = find_option(at_, name);
    if (option == nullptr) return unknown_option(*at_, name);
    if (takes_word(*option) && equals == std::string::npos) ++next_;
    return std::nullopt;
  }

  std::optional<Error> short_options(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const CLI::Option* option = find_option(at_, std::string("-") + word[i]);
      if (option == nullptr) {
        return unknown_option(*at_, i == 1 ? word : std::string("-") + word[i]);
      }
      if (!takes_word(*option)) continue;
      if (i + 1 == word.size()) ++next_;
      break;
    }
    return std::nullopt;
  }

  std::optional<Error> plain(const std::string& word) {
    const std::vector<const CLI::App*> commands = commands_of(*at_);
    if (!commands.empty()) {
      const auto found = std::find_if(commands.begin(), commands.end(),
                                      [&](const CLI::App* one) { return one->get_name() == word; });
      if (found == commands.end()) return unknown_command(*at_, word);
      at_ = *found;
      return std::nullopt;
    }
    if (++plain_words_ <= most_plain_words()) return std::nullopt;
    const std::string command = command_line_of(*at_);
    return usage_error("usage", "`{}` is one word too many for `{}`", word, command)
        .hint(fmt::format("see `{} --help`", command));
  }

  int most_plain_words() const {
    int most = 0;
    for (const CLI::Option* option : at_->get_options()) {
      if (!option->get_positional()) continue;
      most = std::max(most, most + option->get_items_expected_max());
    }
    return most;
  }

  const CLI::App* at_;
  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
  int plain_words_ = 0;
};

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
  return text;
}

/// What the walk does not see: values, and what is missing.
std::string said_our_way(const CLI::ParseError& error, const CLI::App& command) {
  std::string text = without_end(error.what());
  const std::string option = text.substr(0, text.find(':'));
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !commands_of(command).empty()) {
    return fmt::format("`{}` wants a command", command_line_of(command));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return fmt::format("`{}` wants a value", option);
  }
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr && option != text) {
    return fmt::format("`{}`{}", option, text.substr(option.size()));
  }
  return text;
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kMostEdits = 2;
  constexpr std::size_t kLongest = 64;
  std::string best;
  if (word.size() > kLongest) return best;
  std::size_t best_distance = kMostEdits + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate, kMostEdits);
    if (distance >= best_distance || 2 * distance >= word.size()) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string command_line_of(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? "mlenv" : command_line_of(*parent) + " " + app.get_name();
}

Error unknown_command(const CLI::App& app, std::string_view word) {
  const bool is_top = app.get_parent() == nullptr;
  const std::string around = command_line_of(app);
  const std::string near = nearest_word(word, names_of_commands(app));
  constexpr std::string_view kOurName = "mlenv ";
  const std::string shown =
      (is_top ? "" : around.substr(kOurName.size()) + " ") + std::string(word);
  Error mistake = usage_error("unknown-command", "there is no command `{}`", shown);
  if (const std::string_view meant = meant_by_command(word); is_top && !meant.empty()) {
    return std::move(mistake).hint(std::string(meant));
  }
  if (near.empty()) {
    return std::move(mistake).hint(fmt::format("`{} --help` lists the commands", around));
  }
  return std::move(mistake).hint(did_you_mean(around + " " + near));
}

Error usage_mistake(const CLI::App& app, const std::vector<std::string>& words,
                    const CLI::ParseError& error) {
  Walk walk{app, words};
  if (std::optional<Error> mistake = walk.first_mistake()) return *std::move(mistake);
  const CLI::App& command = walk.command();
  return usage_error("usage", "{}", said_our_way(error, command))
      .hint(fmt::format("see `{} --help`", command_line_of(command)));
}

void take_one_word(CLI::Option* option) {
  option->expected(1)->allow_extra_args(false);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

namespace {

/// Behind a word it keeps the parser from taking brackets for a list.
constexpr char kMark = '\x1f';

bool may_be_taken_for_list(const std::string& word) {
  return word.ends_with(']') || word.ends_with(kMark);
}

void unmark_in(CLI::App& app) {
  for (CLI::Option* option : app.get_options({})) {
    option->transform(CLI::Validator(
        [](std::string& word) {
          if (word.ends_with(kMark)) word.pop_back();
          return std::string{};
        },
        ""));
  }
  for (CLI::App* command : app.get_subcommands({})) unmark_in(*command);
}

}  // namespace

std::vector<std::string> as_they_are(CLI::App& app, std::vector<std::string> words) {
  if (std::none_of(words.begin(), words.end(), may_be_taken_for_list)) return words;
  for (std::string& word : words) {
    if (may_be_taken_for_list(word)) word += kMark;
  }
  unmark_in(app);
  return words;
}

void take_one_of(CLI::Option* option, std::vector<std::string> choices) {
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ",") + choice;
  option->check(CLI::Validator(
      [choices = std::move(choices)](const std::string& word) {
        if (std::find(choices.begin(), choices.end(), word) != choices.end()) return std::string{};
        std::string text;
        for (const std::string& choice : choices) {
          const char* between = text.empty() ? "" : &choice == &choices.back() ? " or " : ", ";
          text += between + choice;
        }
        return fmt::format("`{}` is none of its values: {}", word, text);
      },
      "{" + list + "}", kChoices));
}

void check_variables(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    if (!variable.empty() && variable.front() != '=') continue;
    throw usage_error("usage", "`-e {}` names no variable", variable)
        .hint("write `-e NAME=VALUE`, or `-e NAME` for your own value");
  }
}

}  // namespace mlenv::cli
