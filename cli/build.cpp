#include <charconv>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/log.hpp"
#include "cli/build_index.hpp"
#include "cli/command_tree.hpp"
#include "cli/explain.hpp"
#include "cli/imports.hpp"
#include "cli/interrupt.hpp"
#include "cli/outputs.hpp"
#include "cli/platforms.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_steps.hpp"
#include "cli/run_verdict.hpp"
#include "cli/usage.hpp"
#include "images/platform.hpp"

namespace mlenv::cli {
namespace {

struct BuildWords {
  std::string recipe = "recipe.yaml";
  BuildChoice choice;
  bool explain = false;
  bool imports = false;
  bool no_unpack = false;
  std::vector<std::string> outputs;
  std::string push;
  bool plain_http = false;
  std::vector<std::string> secrets;
};

nlohmann::json steps_as_json(const BuildOutcome& outcome) {
  nlohmann::json steps = nlohmann::json::array();
  for (const StepReport& step : outcome.result.steps) {
    steps.push_back({{"title", step.title},
                     {"key", step.key.str()},
                     {"reused", step.reused},
                     {"layers", layers_as_json(step.layers)}});
  }
  return steps;
}

/// What `build` says of one platform's image.
nlohmann::json build_as_json(const BuildOutcome& outcome) {
  return {{"platform", outcome.lock.platform},
          {"lock", lock_digest(outcome.lock).str()},
          {"image", outcome.result.image.digest().str()},
          {"steps", steps_as_json(outcome)}};
}

void answer_build(const BuildWords& options, const PlatformsOutcome& built,
                  const std::optional<ImportTrial>& trial, const Ui& ui) {
  if (!ui.options.json) return ui.answer(built.image.digest().str());
  if (!built.image.index) {
    nlohmann::json one = build_as_json(built.outcomes.front());
    one["schema"] = "mlenv.build/1";
    one["recipe"] = options.recipe;
    if (trial) one["imports"] = imports_as_json(*trial);
    return ui.answer(canonical(one));
  }
  nlohmann::json builds = nlohmann::json::array();
  for (const BuildOutcome& outcome : built.outcomes) builds.push_back(build_as_json(outcome));
  ui.answer(canonical({{"schema", "mlenv.build-index/1"},
                       {"recipe", options.recipe},
                       {"index", built.image.digest().str()},
                       {"builds", builds}}));
}

void explain(const EarlierBuild& earlier, const PlatformsOutcome& built, const Ui& ui) {
  for (const BuildOutcome& outcome : built.outcomes) {
    if (built.image.index) ui.answer(outcome.lock.platform);
    ui.answer_lines(explanation(earlier, outcome));
  }
}

/// Where a build pushes to, from its first layer on.
struct Target {
  Target(const BuildWords& options, Ui& ui)
      : reference(Reference::parse(options.push)),
        registry(ui.http(), reference,
                 push_options(registry_options(options.plain_http), reference)),
        pusher(ui.store(), registry, ui.progress()) {}
  Reference reference;
  Registry registry;
  Pusher pusher;
};

/// What the place that is pushed to has already; nullopt: it has it not, or does not give it.
std::optional<Image> finished_image(Ui& ui, const Reference& target, const Digest& manifest,
                                    bool plain_http) {
  const auto from =
      Reference::parse(fmt::format("{}/{}@{}", target.host(), target.repository(), manifest.str()));
  try {
    return fetch_image(ui.store(), ui.http(), from, registry_options(plain_http), ui.progress());
  } catch (const Error& error) {
    log::debug("the recorded image is not taken from the registry: {}", error.what());
    return std::nullopt;
  }
}

unsigned number_of_jobs(const std::string& word) {
  constexpr unsigned kMost = 4096;
  unsigned number = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, number);
  if (error == std::errc{} && rest == end && number >= 1 && number <= kMost) return number;
  throw CLI::ValidationError("--jobs",
                             fmt::format("`{}` is not a number of threads, 1 or more", word));
}

PlatformsOutcome build_chosen(Ui& ui, const BuildWords& options, const BuildChoice& choice) {
  if (choice.platform == kAllPlatforms) return build_index(ui, options.recipe, choice);
  BuildOutcome outcome = build_recipe(ui, options.recipe, choice);
  Image image = outcome.result.image;
  PlatformsOutcome built{std::move(image), {}};
  built.outcomes.push_back(std::move(outcome));
  return built;
}

/// Nothing of another platform runs here.
void require_own_platform(const BuildWords& options) {
  const std::string& platform = options.choice.platform;
  if (platform.empty() || platform == machine_platform()) return;
  throw usage_error("usage", "`--imports` runs the image's Python, and this machine is {}, not {}",
                    machine_platform(), platform)
      .hint("leave out `--imports`, or `--platform`");
}

int build_command(const BuildWords& options, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const std::vector<Output> outputs = chosen_outputs(ui, options.outputs);
  const std::unique_ptr<Target> target =
      options.push.empty() ? nullptr : std::make_unique<Target>(options, ui);
  BuildChoice choice = options.choice;
  choice.unpack = !options.no_unpack;
  if (options.imports) require_own_platform(options);
  std::vector<fs::path> output_paths;
  for (const Output& output : outputs) {
    if (choice.platform == kAllPlatforms) output.require_index();
    if (!output.is_stdout()) output_paths.push_back(output.path);
  }
  choice.outputs = output_paths;
  choice.secrets = read_secrets(options.secrets);
  if (target) {
    choice.on_layer = [&](const Layer& layer) { target->pusher.add(layer); };
    choice.fetch_layer = [&](const Digest& manifest, const Digest& blob) {
      return pull_layer(ui.store(), target->registry, manifest, blob, ui.progress());
    };
    choice.fetch_image = [&](const Digest& manifest) {
      return finished_image(ui, target->reference, manifest, options.plain_http);
    };
  }
  EarlierBuild earlier;
  if (options.explain) earlier = earlier_build(options.recipe);
  const PlatformsOutcome built = build_chosen(ui, options, choice);
  // The digest stays alone on the last line. A JSON answer has the steps in it.
  if (options.explain && !ui.options.json) explain(earlier, built, ui);
  const Reference name = Reference::parse(built.outcomes.front().lock.settings.name + ":latest");
  for (const Output& output : outputs) {
    write_output(ui.store(), built.image, name, output, ui.progress());
  }
  if (target) {
    const Pusher::Pushed pushed = target->pusher.finish(built.image, target->reference);
    ui.store().tag(target->reference, built.image.digest());
    say_pushed(ui, target->reference, pushed);
  }
  const BuildOutcome& first = built.outcomes.front();
  const bool is_for_here = !built.image.index && first.lock.platform == machine_platform();
  std::optional<ImportTrial> trial;
  if (options.imports && !is_for_here) {
    throw usage_error("usage",
                      "`--imports` runs the image's Python, and the recipe is for {} alone",
                      first.lock.platform)
        .hint("leave out `--imports`");
  }
  if (options.imports) trial = try_and_keep_imports(ui, first.result.image, first.lock);
  if (is_for_here && !ui.options.json) say_verdict(ui, first.result.image, options.recipe);
  answer_build(options, built, trial, ui);
  if (trial && !trial->failed.empty()) throw failed_imports_error(*trial, options.recipe);
  return 0;
}

}  // namespace

Action declare_build(CLI::App& app) {
  auto options = std::make_shared<BuildWords>();
  take_word_of(app.add_option("RECIPE", options->recipe, "recipe file")->capture_default_str(),
               WordKind::recipe);
  app.add_flag("--locked", options->choice.lock.locked,
               "the lock must exist and match the recipe, and the result the .built file");
  app.add_option("--platform", options->choice.platform,
                 "which of the recipe's platforms, or `all` as an index; by default this machine's")
      ->type_name("PLATFORM");
  app.add_option_function<std::string>(
         "-j,--jobs",
         [options](const std::string& word) { options->choice.jobs = number_of_jobs(word); },
         "threads; by default one a processor")
      ->type_name("NUMBER");
  app.add_flag("--explain", options->explain,
               "say of each step whether it was reused, and why not");
  app.add_flag(
      "--facts", options->choice.facts,
      "also read the image's files, and record in the .built file what it needs of a host");
  app.add_flag("--imports", options->imports,
               "import each Python package once when the image is made; status 3 where one fails");
  app.add_flag("--no-unpack", options->no_unpack, "layers only, not ready to run here (for CI)");
  CLI::Option* const output =
      app.add_option("-o,--output", options->outputs,
                     "also write oci:DIR, oci-archive:FILE or docker-archive:FILE");
  take_one_word(output);
  take_word_of(output, WordKind::output);
  app.add_option("--push", options->push, "push to this reference while building");
  app.add_flag("--plain-http", options->plain_http, "the registry has no TLS");
  take_one_word(app.add_option("--secret", options->secrets,
                               "for `run` steps: id=NAME,src=FILE or id=NAME,env=VARIABLE"));
  app.footer("example: mlenv build recipe.yaml --output oci-archive:image.tar");
  return [options](Ui& ui) { return build_command(*options, ui); };
}

}  // namespace mlenv::cli
