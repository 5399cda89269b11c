// A first recipe: for this machine, or from another tool's file.
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/scratch_folder.hpp"
#include "base/size_limits.hpp"
#include "cli/answer_file.hpp"
#include "cli/command_tree.hpp"
#include "cli/init_try.hpp"
#include "cli/interrupt.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "recipes/init/conversion.hpp"
#include "recipes/init/convert.hpp"
#include "recipes/init/convert_folder.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/init/machine_keys.hpp"
#include "recipes/logins.hpp"
#include "recipes/recipe.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/host_logins.hpp"
#include "recipes/resolve/python_build.hpp"
#include "recipes/text.hpp"
#include "runner/engine/container_contents.hpp"
#include "runner/host_facts.hpp"

namespace mlenv::cli {
namespace {

struct InitWords {
  std::string framework;
  std::string from;
  std::string name;
  std::string recipe = "recipe.yaml";
  bool force = false;
  bool schema = false;
  bool try_it = false;
};

void check_place(const InitWords& options) {
  std::error_code unknown;
  const fs::path path = options.recipe;
  if (path.empty()) throw usage_error("usage", "the recipe's path is empty");
  if (fs::is_directory(path, unknown)) {
    throw usage_error("recipe-exists", "`{}` is a folder", options.recipe)
        .hint("name the recipe's file in it");
  }
  if (fs::exists(path, unknown) && !options.force) {
    throw usage_error("recipe-exists", "there is a `{}` already", options.recipe)
        .hint("--recipe names another file, --force writes over this one");
  }
}

void take_name(const InitWords& options, Draft& draft) {
  if (!options.name.empty()) {
    draft.name = options.name;
    if (is_image_name(draft.name)) return;
    throw usage_error("usage", "`{}` is not an image name", options.name)
        .hint("write lower-case letters and digits, joined by single `.`, `_`, `-` or `/`");
  }
  if (!draft.name.empty()) return;
  draft.name = image_name_from(fs::absolute(options.recipe).parent_path().filename().string());
}

void take_framework(const InitWords& options, Draft& draft) {
  if (options.framework.empty()) return;
  const auto read = parse_requirement(trim(options.framework));
  if (const auto* wrong = std::get_if<RequirementMistake>(&read)) {
    throw usage_error("bad-package", "`{}` is not a framework", without_logins(options.framework))
        .because(wrong->message)
        .hint("write `pytorch`, `tensorflow`, `jax` or a Python requirement");
  }
  const std::string framework = std::get<Requirement>(read).str();
  if (!draft.framework.empty() && draft.framework != framework) {
    draft.left_out.push_back({{draft.source, 0}, draft.framework, "--framework names another one"});
  }
  draft.framework = framework;
}

/// What it says is read back before it is written: a recipe that mlenv itself refuses is a bug.
void check_readable(const std::string& text, const fs::path& path) {
  if (text.size() > size_limit::kRecipe) {
    throw failure("too-large", "the recipe would have more than {} MiB",
                  size_limit::kRecipe / size_limit::kMiB)
        .hint("a recipe is to be read by people: convert what is needed of the file");
  }
  try {
    parse_recipe(text, path);
  } catch (const Error& error) {
    throw Error{Kind::internal, "internal", "the new recipe does not read back"}.because(
        error.what());
  }
}

void write_draft(const InitWords& options, const std::string& text) {
  write_answer_file(options.recipe, text);
}

nlohmann::json told_json(const std::vector<LeftOut>& all) {
  nlohmann::json told = nlohmann::json::array();
  for (const LeftOut& one : all) {
    told.push_back({{"file", one.place.file},
                    {"line", one.place.line > 0 ? nlohmann::json(one.place.line) : nullptr},
                    {"text", one.text},
                    {"why", one.why}});
  }
  return told;
}

void answer_draft_json(const InitWords& options, const Draft& draft, const HostFacts& host,
                       const Ui& ui) {
  ui.answer(canonical({{"schema", "mlenv.init/1"},
                       {"recipe", options.recipe},
                       {"from", text_or_null(draft.source)},
                       {"name", draft.name},
                       {"base", draft.base},
                       {"python", text_or_null(draft.python)},
                       {"framework", text_or_null(draft.framework)},
                       {"cuda", text_or_null(draft.cuda)},
                       {"driver", text_or_null(host.nvidia_driver)},
                       {"left_out", told_json(draft.left_out)},
                       {"notes", told_json(draft.notes)}}));
}

/// A file that another tool describes the environment with, where the person named none.
void tell_of_others(const InitWords& options, const Ui& ui) {
  const fs::path folder = fs::path(options.recipe).parent_path();
  const auto found = richest_source(folder.empty() ? "." : folder);
  if (!found) return;
  ui.say(fmt::format("`{0}` is here: `mlenv init --force --from {0}` makes the recipe of it",
                     found->lexically_normal().string()));
}

Draft draft_from(const InitWords& options) {
  const fs::path folder = fs::path(options.recipe).parent_path();
  const auto container = NamedContainer::parse(options.from);
  if (!container) return convert(options.from, folder);
  const ScratchFolder records;
  return convert_container(read_container(*container, records.path()), folder);
}

int init_command(const InitWords& options, Ui& ui) {
  if (options.schema) {
    std::string text(recipe_schema());
    text.pop_back();  // `answer` ends the line
    ui.answer(text);
    return 0;
  }
  check_place(options);
  Draft draft;
  if (!options.from.empty()) draft = draft_from(options);
  take_name(options, draft);
  take_framework(options, draft);
  HostFacts host = probe_host();
  host.has_python_mirror = variable(kPythonMirrorVariable).has_value();
  choose_for_host(draft, host);
  const std::string text =
      with_machine_keys(render_draft(draft, fs::path(options.recipe).filename().string()),
                        machine_steering(own_environment()));
  check_readable(text, options.recipe);
  write_draft(options, text);
  if (!ui.options.json) {
    for (const LeftOut& one : draft.notes) ui.say("note: " + sentence(one));
    for (const LeftOut& one : draft.left_out) ui.say("not carried over: " + sentence(one));
    if (options.from.empty() && options.framework.empty()) tell_of_others(options, ui);
  }
  if (options.try_it) {
    const Interruption interruption{ui.options.quiet || ui.options.json};
    try_recipe(ui, options.recipe);
  }
  if (ui.options.json) {
    answer_draft_json(options, draft, host, ui);
  } else {
    ui.answer(options.recipe);
  }
  return 0;
}

}  // namespace

Action declare_init(CLI::App& app) {
  auto options = std::make_shared<InitWords>();
  app.add_option("--framework", options->framework,
                 "pytorch, tensorflow, jax, or any requirement, as `pytorch>=2.9`");
  take_word_of(app.add_option("--from", options->from,
                              "convert a requirements file, environment.yml, Dockerfile, cog.yaml, "
                              "pyproject.toml, setup.py, Pipfile, pixi.toml, devcontainer.json, "
                              "notebook, virtual environment, docker:NAME, podman:NAME, or the "
                              "richest of a project's folder")
                   ->expected(0, 1)
                   ->default_str("."),
               WordKind::file);
  app.add_option("--name", options->name, "the image's name; else the source's or the folder's");
  take_word_of(
      app.add_option("--recipe", options->recipe, "recipe file to write")->capture_default_str(),
      WordKind::file);
  app.add_flag("--force", options->force, "write over a recipe that is there");
  app.add_flag("--schema", options->schema,
               "print the JSON Schema of recipes, for editors, and write nothing");
  app.add_flag("--try", options->try_it,
               "then lock, build and import all its packages, and add what is missing");
  app.footer("example: mlenv init --framework pytorch");
  return [options](Ui& ui) { return init_command(*options, ui); };
}

}  // namespace mlenv::cli
