#include <memory>

#include <CLI/CLI.hpp>

#include "base/files.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "cli/command_tree.hpp"
#include "cli/facts_text.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv::cli {
namespace {

/// Of this host, or of the one that a file was written on.
Facts host_facts(const std::string& file) {
  if (!file.empty()) return read_facts(read_named_file(file, size_limit::kFacts), file);
  return probe_facts(host_sources(fs::absolute(store_folder()), fs::absolute(temporary_root())));
}

int facts_command(const std::string& file, const Ui& ui) {
  const Facts facts = host_facts(file);
  if (ui.options.json) {
    ui.answer(render_facts(facts));
  } else {
    ui.answer_lines(facts_text(facts));
  }
  return 0;
}

}  // namespace

Action declare_facts(CLI::App& app) {
  auto file = std::make_shared<std::string>();
  take_word_of(
      app.add_option("FILE", *file,
                     "show what `mlenv facts --json` wrote on another host; else this one"),
      WordKind::file);
  app.footer("example: mlenv facts --json >this-host.json");
  return [file](Ui& ui) { return facts_command(*file, ui); };
}

}  // namespace mlenv::cli
