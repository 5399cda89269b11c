#include "cli/check_subjects.hpp"

#include <algorithm>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "cli/is_file.hpp"
#include "cli/recipes_use.hpp"
#include "cli/settings.hpp"
#include "images/inspect/inspect.hpp"
#include "recipes/built_set.hpp"
#include "recipes/image_facts.hpp"
#include "recipes/lock_set.hpp"
#include "recipes/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kFactsEnd = ".json";

Error no_file(const std::string& argument) {
  return failure("absent", "there is no file `{}`", argument)
      .hint("name an image of the store, a lock, a recipe, or facts of an image");
}

/// Of the image itself, where it lies in the store whole: all that its files tell.
std::optional<ImageFacts> facts_of_built(Ui& ui, const Built& built, const ImageFacts& of_lock) {
  try {
    const Image image = ui.store().image(built.image);
    // What is recorded answers at once; the files are read where nothing is.
    auto remembered = remembered_image_facts(ui.store(), image);
    if (!remembered && recorded_facts(built)) return std::nullopt;
    ImageFacts own =
        remembered ? *std::move(remembered) : image_facts(ui.store(), image, ui.progress());
    own.oldest_driver = of_lock.oldest_driver;  // as the recipe asks, which labels do not tell
    own.gpus = of_lock.gpus;
    return own;
  } catch (const Error& error) {
    if (error.code() != "absent") throw;  // another machine's build, or removed since
    return std::nullopt;
  }
}

std::vector<ImageFacts> facts_of_recipe(Ui& ui, const std::string& argument) {
  if (!is_file(argument)) throw no_file(argument);
  const Recipe recipe = read_recipe(argument);
  if (const auto locks = own_lock(ui, recipe)) return facts_of(ui, *locks, built_path(recipe.path));
  return facts_of(recipe);
}

}  // namespace

std::vector<ImageFacts> facts_of(const LockSet& locks) {
  std::vector<ImageFacts> all;
  for (const Lock& lock : locks.locks) all.push_back(image_facts_of(lock));
  return all;
}

std::vector<ImageFacts> facts_of(Ui& ui, const LockSet& locks, const fs::path& record) {
  std::vector<ImageFacts> all = facts_of(locks);
  if (!is_file(record)) return all;
  const BuiltSet builds = parse_builds(read_small_file(record, size_limit::kBuiltRecord), record);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Lock& lock = locks.locks[i];
    const Built* const built = builds.find(lock.platform);
    if (built == nullptr || built->lock != lock_digest(lock)) continue;
    if (auto own = facts_of_built(ui, *built, all[i])) {
      all[i] = *std::move(own);
    } else if (auto recorded = recorded_facts(*built)) {
      all[i] = *std::move(recorded);
    }
  }
  return all;
}

std::optional<LockSet> own_lock(const Ui& ui, const Recipe& recipe) {
  const fs::path path = lock_path(recipe.path);
  if (!is_file(path)) return std::nullopt;
  LockSet locks = parse_locks(read_small_file(path, size_limit::kLock), path);
  const Lock& first = locks.locks.front();
  if (first.request == request_of(recipe) && first.settings == settings_of(recipe)) return locks;
  ui.say(fmt::format("note: `{}` was changed after `{}` was made, which is not looked at",
                     recipe.path.string(), path.string()));
  return std::nullopt;
}

std::vector<ImageFacts> facts_of(const Recipe& recipe) {
  std::vector<ImageFacts> all;
  for (const std::string& platform : recipe.wanted_platforms()) {
    all.push_back(image_facts_of(recipe, platform));
  }
  return all;
}

const ImageFacts& Subject::on(const Facts& host) const {
  const Text& machine = host.system.architecture;
  const std::string wanted = !machine ? "" : *machine == "aarch64" ? "arm64" : "amd64";
  const auto own = std::find_if(facts.begin(), facts.end(),
                                [&](const auto& one) { return one.architecture == wanted; });
  return own == facts.end() ? facts.front() : *own;
}

Subject subject_named(Ui& ui, const std::string& argument) {
  Subject subject{argument, fs::path(argument).filename().string(), {}};
  if (is_recipe_path(argument)) {
    subject.facts = facts_of_recipe(ui, argument);
  } else if (argument.ends_with(kLockEnd)) {
    if (!is_file(argument)) throw no_file(argument);
    const std::string text = read_small_file(argument, size_limit::kLock);
    subject.facts = facts_of(ui, parse_locks(text, argument), built_path(argument));
  } else if (argument.ends_with(kFactsEnd)) {
    if (!is_file(argument)) throw no_file(argument);
    subject.facts = {read_image_facts(read_small_file(argument, size_limit::kFacts), argument)};
    subject.shown.resize(subject.shown.size() - kFactsEnd.size());
  } else {
    const Image image = image_named(ui, argument);
    subject.facts = {image_facts(ui.store(), image, ui.progress())};
    subject.bytes_to_store = bytes_to_unpack(ui.store(), image, ui.progress());
    subject.shown = argument;
  }
  for (ImageFacts& one : subject.facts) {
    one.name = subject.shown;
    if (one.kind != "lock" && one.kind != "recipe") one.kind = "image";  // a file may say anything
  }
  return subject;
}

CheckedHost this_host() {
  const FactSources sources =
      host_sources(fs::absolute(store_folder()), fs::absolute(temporary_root()));
  return {CheckedHost::kThisHost, probe_facts(sources)};
}

CheckedHost host_of_file(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  if (name.ends_with(kFactsEnd)) name.resize(name.size() - kFactsEnd.size());
  return {std::move(name), read_facts(read_named_file(path, size_limit::kFacts), path)};
}

std::vector<CheckedHost> hosts_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code fault;
  for (const fs::directory_entry& one : fs::directory_iterator{folder, fault}) {
    if (one.path().extension() == kFactsEnd) files.push_back(one.path().string());
  }
  if (files.empty()) {
    throw failure("absent", "`{}` holds no facts of hosts", folder)
        .because(fault ? fault.message() : "there is no `*.json` in it")
        .hint("`mlenv facts --json >FOLDER/NAME.json` on each host writes them");
  }
  std::sort(files.begin(), files.end());
  std::vector<CheckedHost> hosts;
  hosts.reserve(files.size());
  for (const std::string& file : files) hosts.push_back(host_of_file(file));
  return hosts;
}

void judge_all(Checked& checked, const Use& use) {
  std::vector<Rank> ranks;
  for (const Subject& subject : checked.subjects) {
    for (const CheckedHost& host : checked.hosts) {
      const ImageFacts& image = subject.on(host.facts);
      Use here = use;
      if (host.is_this()) here.bytes_to_store = subject.bytes_to_store;
      checked.cells.push_back({&subject, &host, judge(image, host.facts, here)});
      ranks.push_back({&image, &host.facts, host.name});
    }
  }
  checked.together = judge_together(ranks, use);
}

bool Checked::any(Severity at_least) const {
  const auto has = [&](const Verdict& verdict) {
    const auto worst = verdict.worst();
    return worst && *worst <= at_least;
  };
  return has(together) || std::any_of(cells.begin(), cells.end(),
                                      [&](const Cell& cell) { return has(cell.verdict); });
}

bool Checked::leaves_open(Severity at_least) const {
  return together.leaves_open(at_least) ||
         std::any_of(cells.begin(), cells.end(),
                     [&](const Cell& cell) { return cell.verdict.leaves_open(at_least); });
}

}  // namespace mlenv::cli
