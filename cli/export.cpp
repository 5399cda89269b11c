#include "cli/export.hpp"

#include <array>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/interrupt.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_devices.hpp"
#include "cli/run_life.hpp"
#include "cli/usage.hpp"
#include "images/unpack.hpp"
#include "runner/export/devcontainer.hpp"
#include "runner/image_program.hpp"
#include "runner/notebook/server.hpp"

namespace mlenv::cli {
namespace {

constexpr const char* kDevcontainerFolder = ".devcontainer";

struct ExportWords {
  std::string image;
  std::string output;  ///< the project's folder; empty: the recipe's, else this one
  bool force = false;
};

fs::path project_of(const ExportWords& options, bool of_recipe) {
  if (!options.output.empty()) return fs::absolute(options.output).lexically_normal();
  return of_recipe ? fs::absolute(options.image).lexically_normal().parent_path()
                   : fs::current_path();
}

/// `team/bert:v2` is `bert`; of a digest the image's title, else its first digits.
std::string plain_name(std::string name, const Image& image) {
  constexpr std::size_t kBrief = 12;
  if (name.starts_with("sha256:")) {
    const auto title = image.settings.labels.find("org.opencontainers.image.title");
    if (title == image.settings.labels.end()) return "mlenv-" + name.substr(7, kBrief);
    name = title->second;
  }
  const std::string repository = Reference::parse(name).repository();
  return repository.substr(repository.rfind('/') + 1);
}

DevContainer container_of(const ExportWords& options, bool of_recipe, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const Image image =
      of_recipe ? built_image(ui, options.image, false) : image_named(ui, options.image);
  const std::vector<fs::path> trees = unpack_image(ui.store(), image, ui.progress());
  sync_in_background(ui.store());
  const UnpackedNames files{trees};
  DevContainer container;
  container.image = image.settings;
  container.digest = image.digest().str();
  container.name = plain_name(of_recipe ? container.digest : options.image, image);
  for (const char* name : {"python", "python3"}) {
    if (!container.python) container.python = program_in_image(image.settings, files, name);
  }
  container.has_kernel = container.python && notebook_kernel_of(files, *container.python);
  container.shell = best_shell(trees);
  container.uses_gpus = wants_gpus(image.settings).value_or(false);
  return container;
}

void refuse_existing(const std::vector<fs::path>& files, bool force) {
  std::error_code unknown;
  for (const fs::path& file : files) {
    if (force || !fs::exists(fs::symlink_status(file, unknown))) continue;
    throw usage_error("file-exists", "there is a `{}` already", file.string())
        .hint("--force writes over it, --output names another project");
  }
}

int devcontainer_command(const ExportWords& options, Ui& ui) {
  const bool of_recipe = is_recipe_path(options.image) && !ui.store().find_image(options.image);
  const fs::path project = project_of(options, of_recipe);
  const std::vector<fs::path> files = {project / kDevcontainerFolder / "devcontainer.json",
                                       project / kDevcontainerFolder / "image.sh"};
  refuse_existing(files, options.force);
  DevContainer container = container_of(options, of_recipe, ui);
  if (of_recipe) {
    container.recipe = fs::absolute(options.image).lexically_normal().lexically_relative(project);
  }
  const std::array texts = {devcontainer_json(container), devcontainer_script(container)};
  make_folders(project / kDevcontainerFolder);
  for (std::size_t i = 0; i < files.size(); ++i) write_file(files[i], texts.at(i));
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.export/1"},
                         {"kind", "devcontainer"},
                         {"files", {files[0].string(), files[1].string()}},
                         {"text", nullptr}}));
    return 0;
  }
  for (const fs::path& file : files) ui.answer_exactly(file.string());
  return 0;
}

}  // namespace

Action declare_export(CLI::App& app) {
  auto action = std::make_shared<Action>();
  auto options = std::make_shared<ExportWords>();
  app.require_subcommand(1);
  CLI::App* devcontainer =
      app.add_subcommand("devcontainer", "files for VS Code and other editors, with Docker");
  take_word_of(devcontainer
                   ->add_option("IMAGE", options->image,
                                "an image in the store, or a recipe (built when needed)")
                   ->required(),
               WordKind::runnable);
  take_word_of(devcontainer->add_option("-o,--output", options->output,
                                        "the project's folder; by default the recipe's, or this"),
               WordKind::file);
  devcontainer->add_flag("--force", options->force, "write over files that are there");
  devcontainer->footer("example: mlenv export devcontainer recipe.yaml");
  devcontainer->callback(
      [=] { *action = [options](Ui& ui) { return devcontainer_command(*options, ui); }; });
  declare_export_ssh(app, action);
  declare_export_job(*app.add_subcommand("slurm", "a job as a batch script for Slurm"), "slurm",
                     action);
  declare_export_job(*app.add_subcommand("ssh", "a job as a script that reaches nodes by ssh"),
                     "ssh", action);
  declare_export_job(*app.add_subcommand("mpi", "a job as a script around mpirun"), "mpi", action);
  app.footer("example: mlenv export devcontainer recipe.yaml");
  return [action](Ui& ui) { return (*action)(ui); };
}

}  // namespace mlenv::cli
