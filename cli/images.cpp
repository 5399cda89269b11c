#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cli/command_tree.hpp"
#include "cli/image_facts_text.hpp"
#include "cli/rollback.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "images/inspect/inspect.hpp"

namespace mlenv::cli {
namespace {

/// For other programs, a shell at each Tab among them: reads names alone, and makes no store where
/// there is none.
int names_command(Ui& ui) {
  if (!Store::exists(store_folder())) return 0;
  for (const Store::Name& name : ui.store().names()) ui.answer(name.name);
  return 0;
}

/// The images of an index, each with its platform; empty for an image alone.
nlohmann::json platforms_as_json(const ImageSet& set) {
  nlohmann::json items = nlohmann::json::array();
  for (std::size_t i = 0; set.index && i < set.images.size(); ++i) {
    const ImageSet one = set.images[i];
    items.push_back({{"platform", set.platform(i)},
                     {"digest", one.digest().str()},
                     {"size_bytes", one.layer_bytes()},
                     {"layers", one.layer_count()}});
  }
  return items;
}

void list_images(const Ui& ui, const std::vector<std::pair<std::string, ImageSet>>& all) {
  std::size_t width = 4;
  for (const auto& [name, set] : all) {
    width = std::max(width, name.size());
    for (std::size_t i = 0; set.index && i < set.images.size(); ++i) {
      width = std::max(width, printable(set.platform(i)).size() + 2);
    }
  }
  const auto line = [&](const std::string& name, const ImageSet& set) {
    ui.answer(fmt::format("{:<{}}  {:<12}  {:>8}  {}", name, width, set.digest().brief(),
                          human_bytes(set.layer_bytes()), set.layer_count()));
  };
  if (!all.empty()) {
    ui.answer(fmt::format("{:<{}}  {:<12}  {:>8}  LAYERS", "NAME", width, "DIGEST", "SIZE"));
  }
  for (const auto& [name, set] : all) {
    line(name, set);
    for (std::size_t i = 0; set.index && i < set.images.size(); ++i) {
      line("  " + printable(set.platform(i)), set.images[i]);
    }
  }
}

int images_command(Ui& ui) {
  std::vector<std::pair<std::string, ImageSet>> all;
  for (const Store::Name& name : ui.store().names()) {
    all.emplace_back(name.name, ui.store().image_set(name.manifest));
  }
  if (!ui.options.json) {
    list_images(ui, all);
    return 0;
  }
  nlohmann::json items = nlohmann::json::array();
  for (const auto& [name, set] : all) {
    items.push_back({{"name", name},
                     {"digest", set.digest().str()},
                     {"size_bytes", set.layer_bytes()},
                     {"layers", set.layer_count()},
                     {"platforms", platforms_as_json(set)}});
  }
  ui.answer(canonical({{"schema", "mlenv.images/1"}, {"images", items}}));
  return 0;
}

nlohmann::json inspection(const Image& image, const std::string& name) {
  nlohmann::json labels = nlohmann::json::array();
  for (const auto& [key, value] : image.settings.labels)
    labels.push_back({{"name", key}, {"value", value}});
  return {{"schema", "mlenv.inspect/1"},
          {"name", name},
          {"digest", image.digest().str()},
          {"platform", image.settings.os + "/" + image.settings.architecture},
          {"size_bytes", ImageSet{image}.layer_bytes()},
          {"layers", layers_as_json(image.layers)},
          {"env", image.settings.env},
          {"entrypoint", image.settings.entrypoint},
          {"command", image.settings.command},
          {"workdir", image.settings.workdir},
          {"labels", labels}};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

nlohmann::json index_inspection(const ImageSet& set, const std::string& name) {
  nlohmann::json artifacts = nlohmann::json::array();
  for (const Artifact& one : set.artifacts) {
    artifacts.push_back({{"digest", one.digest().str()}, {"type", one.type}});
  }
  nlohmann::json absent = nlohmann::json::array();
  for (const ImageIndex::Entry& one : set.absent) {
    absent.push_back({{"digest", one.manifest.digest.str()}, {"platform", one.platform}});
  }
  return {{"schema", "mlenv.inspect-index/1"},   {"name", name},
          {"digest", set.digest().str()},        {"size_bytes", set.layer_bytes()},
          {"platforms", platforms_as_json(set)}, {"artifacts", std::move(artifacts)},
          {"absent", std::move(absent)}};
}

int inspect_index(const ImageSet& set, const std::string& name, const Ui& ui) {
  if (ui.options.json) {
    ui.answer(canonical(index_inspection(set, name)));
    return 0;
  }
  ui.answer("digest    " + set.digest().str());
  ui.answer("size      " + human_bytes(set.layer_bytes()));
  for (std::size_t i = 0; i < set.images.size(); ++i) {
    const ImageSet one = set.images[i];
    ui.answer(fmt::format("image     {}  {}  {} in {} layers", printable(set.platform(i)),
                          one.digest().str(), human_bytes(one.layer_bytes()), one.layer_count()));
  }
  for (const Artifact& one : set.artifacts) {
    ui.answer(fmt::format("artifact  {}  {}", one.digest().str(), printable(one.type)));
  }
  for (const ImageIndex::Entry& one : set.absent) {
    ui.answer("absent    " + printable(one.shown()));
  }
  return 0;
}

struct InspectOptions {
  std::string name;
  std::string platform;
  bool facts = false;
};

int inspect_command(const InspectOptions& options, Ui& ui) {
  if (options.platform.empty()) {
    const ImageSet set = image_set_named(ui, options.name);
    if (set.index) return inspect_index(set, options.name, ui);
  }
  const Image image = image_named(ui, options.name, options.platform);
  if (ui.options.json) {
    ui.answer(canonical(inspection(image, options.name)));
    return 0;
  }
  ui.answer("digest    " + image.digest().str());
  ui.answer("platform  " + printable(image.settings.os + "/" + image.settings.architecture));
  ui.answer("size      " + human_bytes(ImageSet{image}.layer_bytes()));
  ui.answer("command   " + printable(joined(image.settings.command)));
  ui.answer("workdir   " + printable(image.settings.workdir));
  for (const std::string& variable : image.settings.env) {
    ui.answer("env       " + printable(variable));
  }
  for (const auto& [key, value] : image.settings.labels)
    ui.answer(fmt::format("label     {}={}", printable(key), printable(value)));
  for (const Layer& layer : image.layers) {
    ui.answer(fmt::format("layer     {}  {:>8}  {}", layer.blob.digest.brief(),
                          human_bytes(layer.blob.size_bytes), printable(layer.title)));
  }
  return 0;
}

int image_facts_command(const InspectOptions& options, Ui& ui) {
  const Image image = image_named(ui, options.name, options.platform);
  ImageFacts facts = image_facts(ui.store(), image, ui.progress());
  facts.name = printable(options.name);
  if (ui.options.json) {
    ui.answer(render_image_facts(facts));
  } else {
    ui.answer_lines(image_facts_text(facts));
  }
  return 0;
}

}  // namespace

nlohmann::json layers_as_json(const std::vector<Layer>& layers) {
  nlohmann::json items = nlohmann::json::array();
  for (const Layer& layer : layers) {
    items.push_back({{"digest", layer.blob.digest.str()},
                     {"diff_id", layer.diff_id.str()},
                     {"size_bytes", layer.blob.size_bytes},
                     {"title", layer.title}});
  }
  return items;
}

Action declare_images(CLI::App& app) {
  auto names = std::make_shared<bool>(false);
  app.add_flag("--names", *names, "the names alone, one a line, for scripts");
  auto history = std::make_shared<std::string>();
  take_word_of(app.add_option("--history", *history, "what a name meant before, the newest first")
                   ->type_name("NAME"),
               WordKind::image);
  app.footer("example: mlenv images");
  return [names, history](Ui& ui) {
    if (!history->empty()) return show_history(ui, *history);
    return *names && !ui.options.json ? names_command(ui) : images_command(ui);
  };
}

Action declare_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  take_word_of(app.add_option("IMAGE", options->name, "name or digest")->required(),
               WordKind::image);
  app.add_option("--platform", options->platform, "of an index the image for OS/ARCHITECTURE")
      ->type_name("PLATFORM");
  app.add_flag("--facts", options->facts,
               "what it needs of a host, and what its own files lack, as its files say");
  app.footer("example: mlenv inspect jax-cpu --facts");
  return [options](Ui& ui) {
    return options->facts ? image_facts_command(*options, ui) : inspect_command(*options, ui);
  };
}

}  // namespace mlenv::cli
