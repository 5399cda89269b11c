#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/interrupt.hpp"
#include "cli/platforms.hpp"
#include "cli/recipes_use.hpp"

namespace mlenv::cli {
namespace {

struct PushOptions {
  std::string image;
  std::string target;
  bool plain_http = false;
};

int push_command(const PushOptions& options, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  refuse_file(ui, options.image);
  const std::string& to = options.target.empty() ? options.image : options.target;
  const Reference target = Reference::parse(to);
  if (target.host().empty()) {
    throw usage_error("no-registry", "`{}` names no registry to push to", to)
        .hint("name one: `mlenv push " + options.image + " HOST/REPOSITORY:TAG`");
  }
  const ImageSet image = image_set_named(ui, options.image);
  const Pusher::Pushed pushed = push(ui.store(), image, ui.http(), target,
                                     registry_options(options.plain_http), ui.progress());
  ui.store().tag(target, image.digest());
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.push/1"},
                         {"reference", target.str()},
                         {"digest", pushed.digest.str()},
                         {"uploaded_layers", pushed.uploaded},
                         {"uploaded_bytes", pushed.uploaded_bytes},
                         {"present_layers", pushed.present}}));
    return 0;
  }
  say_pushed(ui, target, pushed);
  ui.answer(pushed.digest.str());
  return 0;
}

struct PullOptions {
  std::string source;
  std::string platform;
  bool plain_http = false;
};

int pull_command(const PullOptions& options, Ui& ui) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const Reference source = Reference::parse(options.source);
  if (source.host().empty()) {
    throw usage_error("no-registry", "`{}` names no registry to pull from", options.source)
        .hint("name one: `mlenv pull HOST/REPOSITORY:TAG`");
  }
  RegistryOptions access = registry_options(options.plain_http);
  const bool all = options.platform == kAllPlatforms;
  access.platform = all ? std::string{} : checked_platform(options.platform);
  const ImageSet image = all ? pull_all(ui.store(), ui.http(), source, access, ui.progress())
                             : pull(ui.store(), ui.http(), source, access, ui.progress());
  sync_in_background(ui.store());
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.pull/1"},
                         {"reference", source.str()},
                         {"digest", image.digest().str()},
                         {"layers", image.layer_count()}}));
    return 0;
  }
  ui.answer(image.digest().str());
  return 0;
}

}  // namespace

Action declare_push(CLI::App& app) {
  auto options = std::make_shared<PushOptions>();
  take_word_of(app.add_option("IMAGE", options->image, "an image in the store")->required(),
               WordKind::image);
  app.add_option("REF", options->target,
                 "where to; by default IMAGE itself, when it names a registry");
  app.add_flag("--plain-http", options->plain_http, "the registry has no TLS");
  app.footer("example: mlenv push jax-cpu registry.example.org/team/jax-cpu:v1");
  return [options](Ui& ui) { return push_command(*options, ui); };
}

Action declare_pull(CLI::App& app) {
  auto options = std::make_shared<PullOptions>();
  app.add_option("REF", options->source, "HOST/REPOSITORY:TAG or …@sha256:…")->required();
  app.add_option("--platform", options->platform,
                 "take the image for OS/ARCHITECTURE, or `all`; by default this machine's")
      ->type_name("PLATFORM");
  app.add_flag("--plain-http", options->plain_http, "the registry has no TLS");
  app.footer("example: mlenv pull registry.example.org/team/jax-cpu:v1");
  return [options](Ui& ui) { return pull_command(*options, ui); };
}

}  // namespace mlenv::cli
