#include "cli/rollback.hpp"

#include <charconv>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/run_record.hpp"
#include "cli/usage.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {
namespace {

std::string time_text(std::int64_t seconds) {
  return utc_text(std::chrono::system_clock::time_point{std::chrono::seconds{seconds}});
}

/// Throws `not-found` with a near name, where there is no such name.
std::vector<Store::Meaning> history_of(Ui& ui, const Reference& name, const std::string& shown) {
  std::vector<Store::Meaning> all = ui.store().history(name);
  if (!all.empty()) return all;
  (void)image_set_named(ui, shown);
  throw usage_error("bad-reference", "`{}` is a digest, and a name has a history", shown)
      .hint("`mlenv images` lists the names");
}

bool is_digest_of(const std::string& word, const Digest& digest) {
  constexpr std::string_view kAlgorithm = "sha256:";
  constexpr std::size_t kFewest = 6;
  const bool named = word.starts_with(kAlgorithm);
  const std::string_view hex = std::string_view(word).substr(named ? kAlgorithm.size() : 0);
  return hex.size() >= kFewest && digest.hex().starts_with(hex);
}

/// Its place in the history: what `--history` shows before it, or a digest's beginning.
std::size_t meaning_chosen(const std::vector<Store::Meaning>& all, const std::string& to,
                           const std::string& name) {
  if (all.size() == 1) {
    throw failure("no-history", "`{}` never meant another image", name)
        .because("nothing is remembered from before the name was given, or taken away");
  }
  if (to.empty()) return 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_digest_of(to, all[i].manifest)) return i;
  }
  std::size_t number = 0;
  const char* const end = to.data() + to.size();
  const auto read = std::from_chars(to.data(), end, number);
  const bool is_number = read.ec == std::errc{} && read.ptr == end;
  if (is_number && number < all.size()) return number;
  throw usage_error("no-history", "`{}` did not mean `{}` before", name, to)
      .because(fmt::format("its history goes from 0, what it means now, to {}", all.size() - 1))
      .hint(fmt::format("`mlenv images --history {}` lists it", name));
}

struct RollbackOptions {
  std::string name;
  std::string to;
};

int rollback_command(const RollbackOptions& options, Ui& ui) {
  const Reference name = Reference::parse(options.name);
  const std::vector<Store::Meaning> all = history_of(ui, name, options.name);
  const Store::Meaning& to = all[meaning_chosen(all, options.to, options.name)];
  const Digest was = all.front().manifest;
  if (!to.whole) {
    throw failure("absent", "the store has no more all of `{}`", to.manifest.str())
        .because(
            fmt::format("`{}` meant it from {} on", options.name, local_time(time_text(to.since))))
        .hint("pull it by its digest, or build it from its lock; then roll back");
  }
  ui.store().tag(name, to.manifest);
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.rollback/1"},
                         {"name", listed_name(name)},
                         {"was", was.str()},
                         {"is", to.manifest.str()}}));
    return 0;
  }
  ui.answer(fmt::format("{} was {}, is {}", listed_name(name), was.brief(), to.manifest.brief()));
  if (was != to.manifest) {
    ui.say(fmt::format("`mlenv diff {} {}` tells what differs", was.brief(), to.manifest.brief()));
  }
  return 0;
}

}  // namespace

int show_history(Ui& ui, const std::string& text) {
  const Reference name = Reference::parse(text);
  const std::vector<Store::Meaning> all = history_of(ui, name, text);
  if (ui.options.json) {
    nlohmann::json images = nlohmann::json::array();
    for (const Store::Meaning& one : all) {
      images.push_back(
          {{"digest", one.manifest.str()}, {"since", time_text(one.since)}, {"whole", one.whole}});
    }
    ui.answer(canonical({{"schema", "mlenv.image-history/1"},
                         {"name", listed_name(name)},
                         {"images", std::move(images)}}));
    return 0;
  }
  ui.answer("N   DIGEST        SINCE");
  for (std::size_t i = 0; i < all.size(); ++i) {
    ui.answer(fmt::format("{:<2}  {:<12}  {}{}", i, all[i].manifest.brief(),
                          local_time(time_text(all[i].since)),
                          all[i].whole ? "" : "  not in the store"));
  }
  return 0;
}

Action declare_rollback(CLI::App& app) {
  auto options = std::make_shared<RollbackOptions>();
  take_word_of(app.add_option("NAME", options->name, "the name to move back")->required(),
               WordKind::image);
  app.add_option("--to", options->to,
                 "a digest, or a number of `mlenv images --history NAME`; by default 1")
      ->type_name("DIGEST|N");
  app.footer("example: mlenv rollback train:prod");
  return [options](Ui& ui) { return rollback_command(*options, ui); };
}

}  // namespace mlenv::cli
