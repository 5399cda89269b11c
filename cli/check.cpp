#include <limits>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/check_suggest.hpp"
#include "cli/check_text.hpp"
#include "cli/command_tree.hpp"
#include "cli/usage.hpp"

namespace mlenv::cli {
namespace {

struct CheckWords {
  std::vector<std::string> subjects;
  std::string host;
  std::string fleet;
  bool strict = false;
  bool markdown = false;
  int gpus = -1;
  unsigned nodes = 1;
  std::string user;
  std::string shm;
  bool suggests = false;
  std::vector<std::string> suggested;  ///< its file
  bool force = false;
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

Use asked_use(const CheckWords& options) {
  Use use;
  if (options.gpus >= 0) use.gpus = static_cast<unsigned>(options.gpus);
  use.nodes = options.nodes;
  use.user = options.user;
  if (!options.shm.empty()) use.shm_bytes = bytes_of(options.shm);
  return use;
}

std::vector<std::string> subjects_of(const CheckWords& options) {
  std::vector<std::string> names = options.subjects;
  if (names.empty()) names.emplace_back("recipe.yaml");
  std::error_code unknown;
  if (options.subjects.empty() && !options.suggested.empty() &&
      fs::exists(options.suggested.front(), unknown)) {
    throw usage_error("usage", "`--suggest {}` names the file to write", options.suggested.front())
        .hint(fmt::format("write the recipe first: `mlenv check {} --suggest`",
                          options.suggested.front()));
  }
  if (options.force && !options.suggests) {
    throw usage_error("usage", "--force is for `--suggest`").hint("leave it out");
  }
  if (options.suggests && names.size() > 1) {
    throw usage_error("usage", "`--suggest` is for one recipe, not for {}", names.size())
        .hint("check them one after the other");
  }
  return names;
}

void take_hosts(const CheckWords& options, Checked& checked) {
  if (!options.fleet.empty()) {
    checked.hosts = hosts_in(options.fleet);
  } else {
    checked.hosts.push_back(options.host.empty() ? this_host() : host_of_file(options.host));
  }
}

void answer_check(const CheckWords& options, const Checked& checked,
                  const std::optional<Suggestion>& suggestion, const Ui& ui) {
  if (ui.options.json) {
    nlohmann::json all = check_json(checked);
    if (suggestion) all["suggestion"] = suggestion_json(*suggestion);
    ui.answer(canonical(all));
    return;
  }
  std::vector<std::string> lines = options.markdown ? check_markdown(checked) : check_text(checked);
  if (suggestion) {
    for (std::string& line : suggestion_text(*suggestion)) lines.push_back(std::move(line));
  }
  ui.answer_lines(lines);
}

int check_command(const CheckWords& options, Ui& ui) {
  const Use use = asked_use(options);
  const std::vector<std::string> names = subjects_of(options);
  Checked checked;
  const SuggestOptions asked{
      names.front(), options.suggested.empty() ? "" : options.suggested.front(), options.force};
  std::optional<RecipeNow> now;
  take_hosts(options, checked);
  if (options.suggests) now = recipe_now(ui, asked);
  if (now) {
    checked.subjects.push_back(subject_of(*now, names.front()));
  } else {
    for (const std::string& name : names) checked.subjects.push_back(subject_named(ui, name));
  }
  judge_all(checked, use);
  std::optional<Suggestion> suggestion;
  if (options.suggests) {
    if (!now) ui.say(fmt::format("note: `{}` has no recipe that could be changed", names.front()));
    suggestion = suggest(ui, now ? &*now : nullptr, checked, {use, options.strict, false}, asked);
    write_suggestion(*suggestion);
  }
  answer_check(options, checked, suggestion, ui);
  if (suggestion && suggestion->recipe) {
    const fs::path& path = suggestion->recipe->path;
    ui.say(fmt::format("wrote `{}` and `{}`", path.string(), lock_path(path).string()));
  }
  if (!options.strict) return checked.any(Severity::blocks) ? kAnswerIsNo : 0;
  const bool is_sure = !checked.any(Severity::risks) && !checked.leaves_open(Severity::risks);
  return is_sure ? 0 : kAnswerIsNo;
}

}  // namespace

Action declare_check(CLI::App& app) {
  auto options = std::make_shared<CheckWords>();
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
  app.add_flag("--strict", options->strict, "exit 3 for risks too, and for what is unknown");
  auto* markdown = app.add_flag("--markdown", options->markdown, "for a pull request");
  auto* suggested =
      app.add_option("--suggest", options->suggested,
                     "find the nearest change of the recipe that runs, lock it and write it to "
                     "FILE; by default NAME.suggested.yaml");
  suggested->type_name("[FILE]")->expected(0, 1)->excludes(markdown);
  take_word_of(suggested, WordKind::file);
  app.add_flag("--force", options->force, "write over FILE");
  app.add_option("--gpus", options->gpus, "GPUs wanted on a host; 0: none is needed")
      ->check(CLI::Range(0, 1024));
  app.add_option("--nodes", options->nodes, "hosts that work together")
      ->check(CLI::Range(1, 100000));
  app.add_option("--user", options->user, "UID[:GID] or name that it runs as");
  app.add_option("--shm-size", options->shm, "size of /dev/shm, as in `8g`");
  app.footer(
      "exit status: 0 it runs, 3 it does not\nexample: mlenv check train.yaml --fleet hosts/");
  return [options, suggested](Ui& ui) {
    options->suggests = suggested->count() > 0;
    return check_command(*options, ui);
  };
}

}  // namespace mlenv::cli
