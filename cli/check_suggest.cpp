#include "cli/check_suggest.hpp"

#include <algorithm>
#include <set>

#include "cli/platform_lock.hpp"
#include "cli/recipes_use.hpp"
#include "cli/settings.hpp"
#include "recipes/image_facts.hpp"
#include "recipes/resolve/limits.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

/// Each may ask the indexes.
constexpr std::size_t kMostTries = 5;

bool stands_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// The recipe that an argument means; empty: none.
fs::path recipe_path_of(const std::string& argument) {
  if (is_recipe_path(argument)) return argument;
  if (!argument.ends_with(kLockEnd)) return {};
  for (const char* ending : {".yaml", ".yml"}) {
    fs::path beside = fs::path(argument).replace_extension(ending);
    if (stands_there(beside)) return beside;
  }
  return {};
}

fs::path output_of(const SuggestOptions& options, const fs::path& recipe) {
  if (!options.file.empty()) return options.file;
  return recipe.parent_path() / (recipe.stem().string() + ".suggested.yaml");
}

fs::path real_folder(const fs::path& path) {
  std::error_code ignored;
  const fs::path folder = fs::absolute(path).lexically_normal().parent_path();
  const fs::path real = fs::canonical(folder, ignored);
  return ignored ? folder : real;
}

void check_output(const SuggestOptions& options, const fs::path& recipe) {
  const fs::path output = output_of(options, recipe);
  if (!is_recipe_path(output.string())) {
    throw usage_error("bad-output", "`{}` is no recipe's name", output.string())
        .hint("let it end in `.yaml`; the recipe to check comes before `--suggest`");
  }
  if (real_folder(output) != real_folder(recipe)) {
    throw usage_error("bad-output", "`{}` lies in another folder than `{}`", output.string(),
                      recipe.string())
        .because("what a recipe names by path lies in its own folder")
        .hint("name a file beside the recipe");
  }
  std::error_code ignored;
  for (const fs::path& path : {output, lock_path(output)}) {
    if (!stands_there(path) || (options.force && !fs::is_directory(path, ignored))) continue;
    throw usage_error("recipe-exists", "there is a `{}` already", path.string())
        .hint("`--suggest FILE` names another file, --force writes over this one");
  }
}

/// `limits` is told the constraints of mlenv's own that the locks are held to.
LockSet locked(Ui& ui, const Recipe& recipe, const std::optional<LockSet>& previous,
               std::set<std::string>* limits = nullptr) {
  const LockChoice choice;
  ResolveOptions options;
  options.epoch = source_date_epoch();
  if (limits != nullptr) {
    options.limit = [limits](const std::string& one) { limits->insert(one); };
  }
  PlatformLocking locking(ui, recipe, choice, options);
  LockSet locks;
  for (const std::string& platform : recipe.wanted_platforms()) {
    const Lock* before = previous ? previous->find(platform) : nullptr;
    locks.locks.push_back(locking.lock(platform, {locks, before, nullptr}));
  }
  return locks;
}

/// Lines that are only in one of both, in their order.
std::vector<std::string> line_diff(const std::string& before, const std::string& after) {
  const std::vector<std::string_view> a = split(before, '\n');
  const std::vector<std::string_view> b = split(after, '\n');
  // Longest common subsequence of what begins at each pair of lines.
  std::vector<std::vector<std::size_t>> length(a.size() + 1,
                                               std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      length[i][j] =
          a[i] == b[j] ? length[i + 1][j + 1] + 1 : std::max(length[i + 1][j], length[i][j + 1]);
    }
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || length[i + 1][j] >= length[i][j + 1])) {
      lines.push_back("-" + std::string(a[i++]));
    } else {
      lines.push_back("+" + std::string(b[j++]));
    }
  }
  return lines;
}

std::vector<OnHost> on_hosts(const Checked& checked) {
  std::vector<OnHost> all;
  for (const CheckedHost& host : checked.hosts) {
    all.push_back({&checked.subjects.front().on(host.facts), &host.facts});
  }
  return all;
}

std::size_t served(const Checked& checked, const Demand& demand) {
  return static_cast<std::size_t>(
      std::count_if(checked.cells.begin(), checked.cells.end(),
                    [&](const Cell& cell) { return serves(cell.verdict, demand); }));
}

/// Its first sentence, without the places that follow.
std::string first_sentence(const Error& error) {
  return error.frames().empty() ? std::string(error.what()) : error.frames().front();
}

/// ``cuda: "12.8"` (torch 2.10 for CUDA 12.8)``
std::string proposal_words(const Recipe& recipe, const Proposal& proposal) {
  return fmt::format("{} ({})", shown(recipe, proposal.change), proposal.build);
}

class Suggesting {
 public:
  Suggesting(Ui& ui, const RecipeNow& now, const Checked& before, const Demand& demand,
             fs::path output)
      : ui_(ui), now_(now), before_(before), demand_(demand), output_(std::move(output)) {}

  /// Whether one was found.
  bool run(Suggestion& out) {
    const auto all = proposals(now_.recipe, on_hosts(before_), demand_);
    for (const Proposal& one : all) {
      if (out.tried.size() == kMostTries) break;
      if (attempt(one, out)) return true;
    }
    return false;
  }

 private:
  bool attempt(const Proposal& proposal, Suggestion& out) {
    const std::string what = proposal_words(now_.recipe, proposal);
    Activity activity(ui_.progress(), "trying " + what);
    const auto failed = [&](const std::string& why) {
      activity.result("no");
      out.tried.push_back({what, why});
      return false;
    };
    try {
      auto [change, recipe, locks] = locked_change(proposal.change);
      for (const Lock& lock : locks.locks) {
        const auto faults = limit_faults(lock.wheels);
        if (!faults.empty()) return failed(faults.front().str());
      }
      Checked checked = judged(recipe, locks);
      if (served(checked, demand_) < proposal.count()) return failed(why_not(checked, proposal));
      take(recipe, std::move(locks), {change, proposal.build, proposal.runs_on}, out);
      out.checked = std::move(checked);
      activity.result("runs");
      return true;
    } catch (const Error& error) {
      // What stands against one change may not stand against the next, whatever it is.
      if (error.kind() == Kind::internal) throw;
      std::string why = first_sentence(error);
      if (error.frames().size() > 1) why += ": " + error.frames()[1];
      return failed(error.hint().empty() ? why : fmt::format("{}; {}", why, error.hint()));
    }
  }

  struct Locked {
    RecipeChange change;
    Recipe recipe;
    LockSet locks;
  };
  /// Bounds that the lock is held to are said in the recipe, so that it says what it is.
  Locked locked_change(const RecipeChange& change) const {
    std::set<std::string> limits;
    Recipe recipe = changed_recipe(now_.recipe, change, output_);
    LockSet locks = locked(ui_, recipe, now_.locks, &limits);
    if (limits.empty()) return {change, std::move(recipe), std::move(locks)};
    RecipeChange bounded = change;
    bounded.constraints.assign(limits.begin(), limits.end());
    try {
      Recipe with_bounds = changed_recipe(now_.recipe, bounded, output_);
      LockSet anew = locked(ui_, with_bounds, locks);
      return {std::move(bounded), std::move(with_bounds), std::move(anew)};
    } catch (const Error& error) {
      if (error.code() != "recipe-layout") throw;
      return {change, std::move(recipe), std::move(locks)};  // the lock holds to them all the same
    }
  }

  Checked judged(const Recipe& recipe, const LockSet& locks) const {
    Checked checked;
    const std::string path = recipe.path.string();
    checked.subjects.push_back({path, recipe.path.filename().string(), facts_of(locks)});
    checked.hosts = before_.hosts;
    judge_all(checked, demand_.use);
    return checked;
  }

  std::string why_not(const Checked& checked, const Proposal& proposal) const {
    for (std::size_t i = 0; i < checked.cells.size(); ++i) {
      const Cell& cell = checked.cells[i];
      if (serves(cell.verdict, demand_) || !proposal.runs_on[i]) continue;
      const Finding& first = cell.verdict.findings.front();
      return fmt::format("{}: needed {}, found {}", first.rule, first.needed, first.found);
    }
    return {};
  }

  void take(const Recipe& recipe, LockSet locks, const Proposal& proposal, Suggestion& out) const {
    out.recipe = recipe;
    out.change = shown(now_.recipe, proposal.change);
    out.build = proposal.build;
    for (const Lock& lock : locks.locks) {
      for (const FrameworkBuild& build :
           image_facts_of(lock).frameworks.value.value_or(std::vector<FrameworkBuild>{})) {
        out.build = build.cuda == "cpu"
                        ? fmt::format("{} {} without CUDA", build.name, build.version)
                        : fmt::format("{} {} for CUDA {}", build.name, build.version, build.cuda);
      }
    }
    out.diff = line_diff(now_.recipe.source, recipe.source);
    if (now_.locks) out.versions = lock_set_differences(*now_.locks, locks);
    // What the recipe's own lines tell.
    std::erase_if(out.versions, [](const std::string& line) {
      return line.starts_with("requested ") || line.starts_with("framework: ");
    });
    out.locks = std::move(locks);
  }

  Ui& ui_;
  const RecipeNow& now_;
  const Checked& before_;
  const Demand& demand_;
  fs::path output_;
};

/// For each host that the better of both does not serve.
std::vector<Suggestion::Remedy> remedies(const RecipeNow* now, const Checked& checked,
                                         const Demand& demand,
                                         const std::vector<Suggestion::Tried>& tried) {
  std::vector<Suggestion::Remedy> all;
  for (const Cell& cell : checked.cells) {
    if (serves(cell.verdict, demand)) continue;
    const OnHost here{&cell.subject->on(cell.host->facts), &cell.host->facts};
    Suggestion::Remedy remedy{cell.host->name, {}, {}, served_gpus(*here.image)};
    if (now == nullptr) {
      remedy.driver = driver_that_runs(here, demand).value_or("");
    } else if (const auto found = driver_remedy(now->recipe, here, demand)) {
      remedy.driver = found->driver;
      if (found->with) {
        remedy.change = proposal_words(now->recipe, *found->with);
      }
    }
    if (now != nullptr && remedy.driver.empty()) {
      const auto own = proposals(now->recipe, {here}, demand);
      const std::string change = own.empty() ? "" : proposal_words(now->recipe, own.front());
      const bool failed = std::any_of(tried.begin(), tried.end(),
                                      [&](const auto& one) { return one.what == change; });
      if (!failed) remedy.change = change;
    }
    all.push_back(std::move(remedy));
  }
  return all;
}

}  // namespace

std::optional<RecipeNow> recipe_now(Ui& ui, const SuggestOptions& options) {
  const fs::path path = recipe_path_of(options.subject);
  if (path.empty()) return std::nullopt;
  if (!stands_there(path)) {
    throw failure("absent", "there is no file `{}`", path.string())
        .hint("name an image of the store, a lock, a recipe, or facts of an image");
  }
  RecipeNow now{read_recipe(path), std::nullopt, std::nullopt};
  check_output(options, path);
  now.locks = own_lock(ui, now.recipe);
  if (now.locks) return now;
  try {
    now.locks = locked(ui, now.recipe, std::nullopt);
  } catch (Error& error) {
    if (error.code() != "unsatisfiable") throw;
    now.conflict = std::move(error);
  }
  return now;
}

Subject subject_of(const RecipeNow& now, const std::string& argument) {
  Subject subject{argument, fs::path(argument).filename().string(),
                  now.locks ? facts_of(*now.locks) : facts_of(now.recipe)};
  for (ImageFacts& one : subject.facts) one.name = subject.shown;
  return subject;
}

Suggestion suggest(Ui& ui, const RecipeNow* now, const Checked& checked, Demand demand,
                   const SuggestOptions& options) {
  const auto lacks_gpu = [](const Cell& cell) {
    return std::any_of(cell.verdict.findings.begin(), cell.verdict.findings.end(),
                       [](const Finding& one) { return one.rule == "no-gpu"; });
  };
  demand.with_gpu = std::all_of(checked.cells.begin(), checked.cells.end(), lacks_gpu);
  Suggestion out;
  out.needed = served(checked, demand) < checked.cells.size();
  if (!out.needed) {
    if (now != nullptr && now->conflict) throw Error{*now->conflict};
    return out;
  }
  const bool found =
      now != nullptr &&
      Suggesting(ui, *now, checked, demand, output_of(options, now->recipe.path)).run(out);
  out.remedies = remedies(now, found ? out.checked : checked, demand, out.tried);
  return out;
}

void write_suggestion(const Suggestion& suggestion) {
  if (!suggestion.recipe) return;
  const fs::path& path = suggestion.recipe->path;
  while_doing("writing `" + path.string() + "`", [&] {
    write_file(path, suggestion.recipe->source);
    write_file(lock_path(path), render_locks(suggestion.locks));
  });
}

}  // namespace mlenv::cli
