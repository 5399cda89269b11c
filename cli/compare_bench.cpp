#include "cli/compare_bench.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>

#include "base/duration.hpp"
#include "base/own_entries.hpp"
#include "cli/platforms.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_verdict.hpp"
#include "cli/settings.hpp"
#include "images/unpack.hpp"
#include "recipes/text.hpp"
#include "runner/compare/cost.hpp"
#include "runner/compare/records.hpp"
#include "runner/compare/scripts.hpp"
#include "runner/compare/tools_server.hpp"
#include "runner/image_program.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::cli {
namespace {

constexpr const char* kToolsName = "compare-tools";
constexpr double kBudget = 530;  // seconds, so that all of it takes less than ten minutes
constexpr double kQuickBudget = 95;
// With what preparing takes of it: a first start may give the image to an engine.
constexpr double kTotal = 550;
constexpr double kQuickTotal = 105;
constexpr double kQuickPreparing = 50;

/// The bare host runs the image's programs with all that the caller may do. Of what was pulled or
/// loaded labels prove nothing: whoever made it wrote them.
std::string bare_hindrance(const Store& store, const Image& image) {
  if (is_built_here(store, image)) return "";
  return "the image was not built here, and its programs would run outside of a container; "
         "--sides bare,… asks for it all the same";
}

Image image_or_recipe(Ui& ui, const std::string& name) {
  const bool of_recipe = is_recipe_path(name) && !ui.store().find_image(name);
  Image image = of_recipe ? built_image(ui, name, false) : image_named(ui, name);
  require_runnable(image, name);
  return image;
}

double budget_of(const CompareWords& words) {
  if (words.budget.empty()) return words.quick ? kQuickBudget : kBudget;
  const auto parsed = parse_duration(words.budget);
  if (!parsed || parsed->count() <= 0) {
    throw usage_error("usage", "`--budget`: `{}` is not a duration", words.budget)
        .hint("write it as 90s, 5m or 1h30m");
  }
  return std::chrono::duration<double>(*parsed).count();
}

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string_view one : split(text, ',')) {
    if (!trim(one).empty()) words.emplace_back(trim(one));
  }
  return words;
}

}  // namespace

std::vector<std::string> parse_sides(const std::string& text) {
  std::vector<std::string> sides;
  const std::vector<std::string> asked = list_of(text);
  for (const std::string& one : asked) {
    if (compare::find_side_spec(one) == nullptr) {
      throw usage_error("usage", "`--sides`: there is no side `{}`", one)
          .hint("sides are bare, builtin, docker, podman and vm");
    }
  }
  for (const compare::SideSpec& spec : compare::side_specs()) {
    const bool is_asked = std::find(asked.begin(), asked.end(), spec.id) != asked.end();
    if (asked.empty() || is_asked) sides.emplace_back(spec.id);
  }
  return sides;
}

std::map<std::string, std::vector<std::string>> parse_side_options(
    const std::vector<std::string>& words) {
  std::map<std::string, std::vector<std::string>> options;
  for (const std::string& word : words) {
    const std::size_t sign = word.find('=');
    const std::string side = word.substr(0, sign);
    const std::string option = sign == std::string::npos ? "" : word.substr(sign + 1);
    if (compare::find_side_spec(side) == nullptr || side == "bare" || !option.starts_with("-")) {
      throw usage_error("usage", "`--option`: `{}` is not SIDE=OPTION", word)
          .hint("as in `--option builtin=--cpus=0.5`; the bare host has no options");
    }
    options[side].push_back(option);
  }
  return options;
}

void check_words(const CompareWords& words) {
  const std::vector<std::string> sides = parse_sides(words.sides);
  for (const auto& [side, options] : parse_side_options(words.options)) {
    if (std::find(sides.begin(), sides.end(), side) != sides.end()) continue;
    throw usage_error("usage", "`--option {}={}`: `{}` takes no part", side,
                      compare::shown_words(options).front(), side)
        .hint("name it with `--sides`, too");
  }
  (void)budget_of(words);
  compare::check_rows(list_of(words.rows));
  (void)compare::parse_prices(words.prices);
}

CompareBench::CompareBench(Ui& ui, const CompareWords& words)
    : image_name(words.image), image(image_or_recipe(ui, words.image)) {
  const auto begun = std::chrono::steady_clock::now();
  options.side_options = parse_side_options(words.options);
  options.rows = list_of(words.rows);
  if (!words.previous.empty()) previous = image_named(ui, words.previous);
  options.quick = words.quick;
  options.budget_seconds = budget_of(words);
  if (options.quick) options.preparing_seconds = kQuickPreparing;
  if (words.budget.empty()) options.total_seconds = options.quick ? kQuickTotal : kTotal;
  bench.store = ui.store().root();
  bench.terms.program = own_executable();
  bench.terms.image = image.digest().str();
  bench.terms.memory = words.memory;
  bench.terms.label =
      fmt::format("{}={}", compare::kLabel, new_run_id(std::chrono::system_clock::now()));
  bench.command = words.command;
  constexpr std::uint64_t kFew = 2;
  if (options.quick) bench.instances = kFew;
  bench.own_boot_id = trim(read_file("/proc/sys/kernel/random/boot_id"));
  limit_processors(words.cpus);
  choose_sides(ui.store(), words);
  find_tools(ui, words.tools);
  work_.emplace(ui.store().scratch());
  make_work_folder();
  bench.trees = unpack_image(ui.store(), image, ui.progress());
  const UnpackedNames files(bench.trees);
  bench.has_python = program_in_image(image.settings, files, "python3").has_value();
  const bool has_bare =
      std::find(options.sides.begin(), options.sides.end(), "bare") != options.sides.end() &&
      !options.absent.contains("bare");
  if (has_bare) bare_folder_.emplace(ui.store().scratch());
  bench.minders = &minders_.emplace(has_bare ? bare_folder_->path() : fs::path{});
  if (has_bare) make_bare(ui);
  if (tools) bench.port = compare::free_port();
  // What is made once, the tools and unpacked trees, may come on top. To remove the bare host's
  // files takes as long as to make them.
  constexpr double kMostGone = 20;
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begun;
  options.gone_seconds = 2 * std::min(gone.count(), kMostGone);
}

void CompareBench::choose_sides(const Store& store, const CompareWords& words) {
  options.sides = parse_sides(words.sides);
  const std::string why = words.sides.empty() ? bare_hindrance(store, image) : "";
  if (!why.empty()) options.absent["bare"] = why;
}

void CompareBench::limit_processors(std::uint64_t wanted) {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  if (::sched_getaffinity(0, sizeof ours, &ours) != 0) return;
  const auto there = static_cast<std::uint64_t>(CPU_COUNT(&ours));
  bench.terms.processors = there;
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  // Daemons do not inherit what taskset, Slurm or a cpuset left us.
  const bool has_fewer = online > 0 && there < static_cast<std::uint64_t>(online);
  if (wanted == 0 && !has_fewer) return;
  if (wanted == 0) wanted = there;
  if (wanted > there) {
    throw usage_error("usage", "`--cpus {}`: this process may use {} processors", wanted, there);
  }
  cpu_set_t few;
  CPU_ZERO(&few);
  for (std::size_t i = 0; i < CPU_SETSIZE && static_cast<std::uint64_t>(CPU_COUNT(&few)) < wanted;
       ++i) {
    if (!CPU_ISSET(i, &ours)) continue;
    CPU_SET(i, &few);
    bench.terms.cpuset += fmt::format("{}{}", bench.terms.cpuset.empty() ? "" : ",", i);
  }
  // What is started inherits it.
  if (::sched_setaffinity(0, sizeof few, &few) != 0) {
    throw os_error(errno, "cannot keep to {} processors", wanted);
  }
  bench.terms.processors = wanted;
}

void CompareBench::find_tools(Ui& ui, const std::string& name) {
  const auto needs_tools = [&](const compare::ProbeSpec& probe) {
    return probe.kind == compare::ProbeKind::tools || probe.kind == compare::ProbeKind::script;
  };
  bool needed = false;
  for (const compare::ProbeSpec& probe : compare::probe_specs()) {
    for (const std::string_view row : probe.rows) {
      needed |= needs_tools(probe) && compare::is_asked(row, options.rows);
    }
  }
  if (!needed) {
    options.tools_why = "no row needs the tools";
    return;
  }
  try {
    if (!name.empty()) {
      tools = image_or_recipe(ui, name);
    } else {
      const fs::path recipe = ui.store().root() / "compare" / (std::string(kToolsName) + ".yaml");
      make_own_folders(recipe.parent_path());
      if (read_file_if_exists(recipe) != compare::tools_recipe()) {
        write_file(recipe, compare::tools_recipe());
      }
      tools = built_image(ui, recipe, false);
    }
    bench.terms.tools = tools->digest().str();
  } catch (const Error& error) {
    if (!name.empty()) throw;
    options.tools_why = "the image with the tools cannot be made: " + error.frames().back();
  }
}

void CompareBench::make_work_folder() {
  bench.terms.work = work_->path();
  const fs::path& work = bench.terms.work;
  fs::permissions(work, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                            fs::perms::others_read | fs::perms::others_exec);
  const auto put = [&](const char* name, std::string_view text) {
    write_file(work / name, text, false);
  };
  put("training.py", compare::training_script());
  put("loading.py", compare::loading_script());
  put("isolation.py", compare::isolation_script());
  put("command.py", compare::command_script());
  make_folders(work / "samples");
  constexpr int kSamples = 1000;
  constexpr std::size_t kSampleBytes = 16384;
  const std::string sample(kSampleBytes, 'x');
  for (int i = 0; i < kSamples; ++i) {
    write_file(work / "samples" / fmt::format("{:04}", i), sample, false);
  }
}

void CompareBench::make_bare(Ui& ui) {
  const std::string& why = minders_->bare.unshielded();
  const Filled how = why.empty() ? Filled::with_links : Filled::with_copies;
  if (how == Filled::with_copies) {
    ui.say(
        fmt::format("the bare host gets a copy of the image: its files cannot be kept from being "
                    "written here ({})",
                    why));
  }
  const auto fill = [&](const char* name, const Image& from) {
    const fs::path root = bare_folder_->path() / name;
    make_folders(root);
    return compare::BareImage(unpack_image(ui.store(), from, ui.progress()), from.settings, root,
                              how);
  };
  bare_.emplace(fill("image", image));
  bench.bare = &*bare_;
  if (how == Filled::with_copies) {
    // What is not on the disk yet cannot be put out of memory for cold starts.
    (void)::syncfs(open_file(bare_->root(), O_RDONLY | O_DIRECTORY).get());
  }
  if (!tools) return;
  bare_tools_.emplace(fill("tools", *tools));
  bench.bare_tools = &*bare_tools_;
}

}  // namespace mlenv::cli
