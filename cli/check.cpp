#include <limits>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/check_text.hpp"
#include "cli/command_tree.hpp"
#include "cli/usage.hpp"

namespace mlenv::cli {
namespace {

constexpr int kNo = 3;

struct Options {
  std::vector<std::string> subjects;
  std::string host;
  std::string fleet;
  bool strict = false;
  bool markdown = false;
  int gpus = -1;
  unsigned nodes = 1;
  std::string user;
  std::string shm;
};

/// `8g`, `512m`, `1073741824`, as Docker's `--shm-size` has it.
std::uint64_t bytes_of(const std::string& text) {
  std::uint64_t value = 0;
  std::size_t at = 0;
  constexpr std::size_t kMostDigits = 15;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && at < kMostDigits) {
    value = value * 10 + static_cast<std::uint64_t>(text[at++] - '0');
  }
  const std::string unit = text.substr(at);
  const std::string_view units = "bkmgt";
  const std::size_t power = unit.empty() ? 0 : units.find(to_lower(unit.front()));
  const bool is_size = at > 0 && unit.size() <= 1 && power < units.size() &&
                       value <= std::numeric_limits<std::uint64_t>::max() >> (10U * power);
  if (!is_size) {
    throw usage_error("usage", "`--shm-size {}` is no size", text)
        .hint("write a number of bytes, or one with k, m or g: `--shm-size 8g`");
  }
  return value << (10U * power);
}

Use use_of(const Options& options) {
  Use use;
  if (options.gpus >= 0) use.gpus = static_cast<unsigned>(options.gpus);
  use.nodes = options.nodes;
  use.user = options.user;
  if (!options.shm.empty()) use.shm_bytes = bytes_of(options.shm);
  return use;
}

void judge_all(Checked& checked, const Use& use) {
  std::vector<ImageFacts> ranks;
  for (const Subject& subject : checked.subjects) {
    ranks.push_back(subject.on(checked.hosts.front().facts));
    for (const CheckedHost& host : checked.hosts) {
      checked.cells.push_back({&subject, &host, judge(subject.on(host.facts), host.facts, use)});
    }
  }
  checked.together = judge_together(ranks);
}

int check_command(const Options& options, Ui& ui) {
  const Use use = use_of(options);
  Checked checked;
  std::vector<std::string> names = options.subjects;
  if (names.empty()) names.emplace_back("recipe.yaml");
  for (const std::string& name : names) checked.subjects.push_back(subject_named(ui, name));
  if (!options.fleet.empty()) {
    checked.hosts = hosts_in(options.fleet);
  } else {
    checked.hosts.push_back(options.host.empty() ? this_host() : host_of_file(options.host));
  }
  judge_all(checked, use);
  if (ui.options.json) {
    ui.answer(canonical(check_json(checked)));
  } else {
    const auto lines = options.markdown ? check_markdown(checked) : check_text(checked);
    for (const std::string& line : lines) ui.answer(line);
  }
  return checked.any(options.strict ? Severity::risks : Severity::blocks) ? kNo : 0;
}

}  // namespace

Action declare_check(CLI::App& app) {
  auto options = std::make_shared<Options>();
  take_word_of(app.add_option("SUBJECT", options->subjects,
                              "image of the store, lock, recipe, or facts of an image (.json); by "
                              "default recipe.yaml"),
               WordKind::runnable);
  auto* host = app.add_option("--host", options->host,
                              "what `mlenv facts --json` wrote on another host; else this one");
  take_word_of(host, WordKind::file);
  auto* fleet = app.add_option("--fleet", options->fleet, "a folder of such files: all of them");
  take_word_of(fleet, WordKind::file);
  host->excludes(fleet);
  app.add_flag("--strict", options->strict, "exit 3 for risks too");
  app.add_flag("--markdown", options->markdown, "for a pull request");
  app.add_option("--gpus", options->gpus, "GPUs wanted on a host; 0: none is needed")
      ->check(CLI::Range(0, 1024));
  app.add_option("--nodes", options->nodes, "hosts that work together")
      ->check(CLI::Range(1, 100000));
  app.add_option("--user", options->user, "UID[:GID] or name that it runs as");
  app.add_option("--shm-size", options->shm, "size of /dev/shm, as in `8g`");
  app.footer(
      "exit status: 0 it runs, 3 it does not\nexample: mlenv check train.yaml --fleet hosts/");
  return [options](Ui& ui) { return check_command(*options, ui); };
}

}  // namespace mlenv::cli
