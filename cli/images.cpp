#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cli/command_tree.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"

namespace mlenv::cli {
namespace {

std::uint64_t blob_bytes(const Image& image) {
  std::uint64_t bytes = 0;
  for (const Layer& layer : image.layers) bytes += layer.blob.size_bytes;
  return bytes;
}

/// For other programs, a shell at each Tab among them: reads names alone, and makes no store where
/// there is none.
int names_command(Ui& ui) {
  if (!Store::exists(store_folder())) return 0;
  for (const Store::Name& name : ui.store().names()) ui.answer(name.name);
  return 0;
}

int images_command(Ui& ui) {
  nlohmann::json items = nlohmann::json::array();
  std::size_t width = 4;
  const std::vector<Store::Name> names = ui.store().names();
  for (const Store::Name& name : names) width = std::max(width, name.name.size());
  if (!ui.options.json && !names.empty()) {
    ui.answer(fmt::format("{:<{}}  {:<12}  {:>8}  LAYERS", "NAME", width, "DIGEST", "SIZE"));
  }
  for (const Store::Name& name : names) {
    const Image image = ui.store().image(name.manifest);
    if (ui.options.json) {
      items.push_back({{"name", name.name},
                       {"digest", name.manifest.str()},
                       {"size_bytes", blob_bytes(image)},
                       {"layers", image.layers.size()}});
    } else {
      ui.answer(fmt::format("{:<{}}  {:<12}  {:>8}  {}", name.name, width, name.manifest.brief(),
                            human_bytes(blob_bytes(image)), image.layers.size()));
    }
  }
  if (ui.options.json) ui.answer(canonical({{"schema", "mlenv.images/1"}, {"images", items}}));
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
          {"size_bytes", blob_bytes(image)},
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

int inspect_command(const std::string& name, Ui& ui) {
  const Image image = image_named(ui, name);
  if (ui.options.json) {
    ui.answer(canonical(inspection(image, name)));
    return 0;
  }
  ui.answer("digest    " + image.digest().str());
  ui.answer("platform  " + printable(image.settings.os + "/" + image.settings.architecture));
  ui.answer("size      " + human_bytes(blob_bytes(image)));
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
  app.footer("example: mlenv images");
  return [names](Ui& ui) {
    return *names && !ui.options.json ? names_command(ui) : images_command(ui);
  };
}

Action declare_inspect(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  take_word_of(app.add_option("IMAGE", *name, "name or digest")->required(), WordKind::image);
  app.footer("example: mlenv inspect jax-cpu");
  return [name](Ui& ui) { return inspect_command(*name, ui); };
}

}  // namespace mlenv::cli
