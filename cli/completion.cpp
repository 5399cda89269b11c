// What shells and `man` read, made from the command line itself: completion, and the hidden
// `generate`, which writes all of it for installing.
#include "cli/completion.hpp"

#include <array>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/man_page.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"

namespace mlenv::cli {
namespace {

struct Shell {
  const char* name;
  const char* file;  ///< where a distribution's packages put it, below share/
  std::string (*script)(const ShownCommand& tree);
};
constexpr std::array kShells = {
    Shell{"bash", "bash-completion/completions/mlenv", bash_completion},
    Shell{"zsh", "zsh/site-functions/_mlenv", zsh_completion},
    Shell{"fish", "fish/vendor_completions.d/mlenv.fish", fish_completion},
};

int completion_command(const std::string& name, CLI::App& top, const Ui& ui) {
  for (const Shell& shell : kShells) {
    if (shell.name != name) continue;
    std::string script = shell.script(command_tree(top));
    script.pop_back();  // `answer` ends the line
    ui.answer(script);
  }
  return 0;
}

void put(const fs::path& path, std::string_view text) {
  make_folders(path.parent_path());
  write_file(path, text, false);
}

int generate_command(const fs::path& folder, CLI::App& top) {
  const ShownCommand tree = command_tree(top);
  for (const Shell& shell : kShells) put(folder / shell.file, shell.script(tree));
  for (const ManPage& page : man_pages(tree)) {
    put(folder / "man" / "man1" / (page.name + ".1"), page.text);
  }
  return 0;
}

}  // namespace

Action declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const Shell& one : kShells) names.emplace_back(one.name);
  CLI::Option* const option = app.add_option("SHELL", *shell, "which shell's");
  take_one_of(option, std::move(names));
  option->required();
  app.footer("example: mlenv completion bash > ~/.local/share/bash-completion/completions/mlenv");
  CLI::App* const top = app.get_parent();
  return [shell, top](Ui& ui) { return completion_command(*shell, *top, ui); };
}

Action declare_generate(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  app.add_option("FOLDER", *folder, "below which completion scripts and manual pages are written")
      ->required();
  CLI::App* const top = app.get_parent();
  return [folder, top](Ui&) { return generate_command(*folder, *top); };
}

}  // namespace mlenv::cli
