#include <unistd.h>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/interrupt.hpp"
#include "cli/platforms.hpp"
#include "cli/recipes_use.hpp"
#include "cli/ui.hpp"
#include "images/archive_load.hpp"

namespace mlenv::cli {
namespace {

struct LoadOptions {
  std::string from;
  std::string name;
  std::string platform;
};

void refuse_terminal(const LoadSource& from) {
  if (!from.is_stdin() || ::isatty(STDIN_FILENO) == 0) return;
  throw usage_error("usage", "`mlenv load -` reads an archive, and standard input is a terminal")
      .hint("`docker save IMAGE | mlenv load -`, or name a file");
}

Reference name_for_it(const std::string& text) {
  Reference name = name_to_give(text);
  if (!name.digest()) return name;
  throw usage_error("bad-reference", "`{}` has a digest, which follows from the image", text)
      .hint("give a name alone: `train:v1`");
}

void tell(const Ui& ui, const LoadedImage& one, const std::vector<std::string>& names) {
  ui.answer(one.image.digest().str());
  for (const std::string& name : names) ui.say("loaded `" + name + "`");
  if (!names.empty()) return;
  ui.say(fmt::format("loaded `{0}`, which has no name; `mlenv tag {0} NAME` gives it one",
                     one.image.digest().brief()));
}

int load_command(const LoadOptions& options, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const LoadSource from = LoadSource::parse(options.from);
  refuse_terminal(from);
  std::optional<Reference> given;
  if (!options.name.empty()) given = name_for_it(options.name);
  const std::vector<LoadedImage> all = load_images(
      ui.store(), from, {checked_platform(options.platform), given.has_value()}, ui.progress());
  nlohmann::json images = nlohmann::json::array();
  for (const LoadedImage& one : all) {
    std::vector<std::string> names;
    for (const Reference& name : given ? std::vector{*given} : one.names) {
      ui.store().tag(name, one.image.digest());
      names.push_back(listed_name(name));
    }
    if (!ui.options.json) tell(ui, one, names);
    images.push_back({{"digest", one.image.digest().str()},
                      {"names", names},
                      {"layers", one.image.layer_count()}});
  }
  sync_in_background(ui.store());
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.load/1"}, {"images", std::move(images)}}));
  }
  return 0;
}

}  // namespace

Action declare_load(CLI::App& app) {
  auto options = std::make_shared<LoadOptions>();
  take_word_of(app.add_option("INPUT", options->from,
                              "a file, a folder, or `-`: standard input; one image of several as "
                              "oci:DIR:TAG, oci-archive:FILE:TAG, docker-archive:FILE:TAG")
                   ->required(),
               WordKind::file);
  app.add_option("--name", options->name,
                 "call the image so; by default as it is called in the file")
      ->type_name("NAME");
  app.add_option("--platform", options->platform, "of an index the image for OS/ARCHITECTURE alone")
      ->type_name("PLATFORM");
  app.footer("example: docker save train:v1 | mlenv load -");
  return [options](Ui& ui) { return load_command(*options, ui); };
}

}  // namespace mlenv::cli
