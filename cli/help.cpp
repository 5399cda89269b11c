#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command_tree.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"

namespace mlenv::cli {
namespace {

const CLI::App& command_of(const CLI::App& top, const std::vector<std::string>& words) {
  const CLI::App* at = &top;
  for (const std::string& word : words) {
    const auto found =
        at->get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
    if (found.empty()) throw unknown_command(*at, word);
    at = found.front();
  }
  return *at;
}

/// The parser's, without the second blank line that it leaves before each further heading.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    constexpr std::string_view kTwoBlankLines = "\n\n\n";
    for (std::size_t at = 0; (at = text.find(kTwoBlankLines, at)) != std::string::npos;) {
      text.erase(at, 1);
    }
    return text;
  }
};

}  // namespace

void use_help_formatter(CLI::App& app) { app.formatter(std::make_shared<HelpFormatter>()); }

std::string help_text(const CLI::App& command) {
  std::string text = command.get_formatter()->make_help(&command, command_line_of(command),
                                                        CLI::AppFormatMode::Normal);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Action declare_help(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  take_word_of(app.add_option("COMMAND", *words, "of which command; by default a list of them"),
               WordKind::command);
  app.footer("example: mlenv help build");
  const CLI::App* const top = app.get_parent();
  return [words, top](Ui& ui) {
    ui.answer(help_text(command_of(*top, *words)));
    return 0;
  };
}

}  // namespace mlenv::cli
