#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/ui.hpp"
#include "images/archive.hpp"

namespace mlenv::cli {
namespace {

std::uint64_t blob_bytes(const Image& image) {
  std::uint64_t bytes = 0;
  for (const Layer& layer : image.layers) bytes += layer.blob.size_bytes;
  return bytes;
}

int images_command(Ui& ui) {
  nlohmann::json items = nlohmann::json::array();
  std::size_t width = 4;
  const std::vector<Store::Name> names = ui.store().names();
  for (const Store::Name& name : names) width = std::max(width, name.name.size());
  if (!ui.options.json && !names.empty()) {
    Ui::answer(fmt::format("{:<{}}  {:<12}  {:>8}  LAYERS", "NAME", width, "DIGEST", "SIZE"));
  }
  for (const Store::Name& name : names) {
    const Image image = ui.store().image(name.manifest);
    if (ui.options.json) {
      items.push_back({{"name", name.name},
                       {"digest", name.manifest.str()},
                       {"size_bytes", blob_bytes(image)},
                       {"layers", image.layers.size()}});
    } else {
      Ui::answer(fmt::format("{:<{}}  {:<12}  {:>8}  {}", name.name, width, name.manifest.brief(),
                             human_bytes(blob_bytes(image)), image.layers.size()));
    }
  }
  if (ui.options.json) Ui::answer(canonical({{"schema", "mlenv.images/1"}, {"images", items}}));
  return 0;
}

nlohmann::json inspection(const Image& image, const std::string& name) {
  nlohmann::json layers = nlohmann::json::array();
  for (const Layer& layer : image.layers) {
    layers.push_back({{"digest", layer.blob.digest.str()},
                      {"diff_id", layer.diff_id.str()},
                      {"size_bytes", layer.blob.size_bytes},
                      {"title", layer.title}});
  }
  nlohmann::json labels = nlohmann::json::array();
  for (const auto& [key, value] : image.settings.labels)
    labels.push_back({{"name", key}, {"value", value}});
  return {{"schema", "mlenv.inspect/1"},
          {"name", name},
          {"digest", image.digest().str()},
          {"platform", image.settings.os + "/" + image.settings.architecture},
          {"size_bytes", blob_bytes(image)},
          {"layers", layers},
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
    Ui::answer(canonical(inspection(image, name)));
    return 0;
  }
  Ui::answer("digest    " + image.digest().str());
  Ui::answer("platform  " + image.settings.os + "/" + image.settings.architecture);
  Ui::answer("size      " + human_bytes(blob_bytes(image)));
  Ui::answer("command   " + joined(image.settings.command));
  Ui::answer("workdir   " + image.settings.workdir);
  for (const std::string& variable : image.settings.env) Ui::answer("env       " + variable);
  for (const auto& [key, value] : image.settings.labels)
    Ui::answer(fmt::format("label     {}={}", key, value));
  for (const Layer& layer : image.layers) {
    Ui::answer(fmt::format("layer     {}  {:>8}  {}", layer.blob.digest.brief(),
                           human_bytes(layer.blob.size_bytes), layer.title));
  }
  return 0;
}

}  // namespace

Action declare_images(CLI::App& app) {
  app.footer("example: mlenv images");
  return [](Ui& ui) { return images_command(ui); };
}

Action declare_inspect(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("IMAGE", *name, "name or digest")->required();
  app.footer("example: mlenv inspect jax-cpu");
  return [name](Ui& ui) { return inspect_command(*name, ui); };
}

Action declare_tag(CLI::App& app) {
  auto names = std::make_shared<std::pair<std::string, std::string>>();
  app.add_option("IMAGE", names->first, "name or digest")->required();
  app.add_option("NAME", names->second, "the name to give it")->required();
  app.footer("example: mlenv tag jax-cpu registry.example.org/team/jax-cpu:v1");
  return [names](Ui& ui) {
    ui.store().tag(Reference::parse(names->second), image_named(ui, names->first).digest());
    return 0;
  };
}

Action declare_rm(CLI::App& app) {
  auto names = std::make_shared<std::vector<std::string>>();
  app.add_option("NAME", *names, "names to take away; layers stay for other images")->required();
  app.footer("example: mlenv rm jax-cpu:latest");
  return [names](Ui& ui) {
    for (const std::string& name : *names) {
      if (ui.store().untag(Reference::parse(name))) continue;
      throw failure("not-found", "there is no name `{}` in the store", name)
          .hint("`mlenv images` lists the names");
    }
    return 0;
  };
}

Action declare_save(CLI::App& app) {
  auto options = std::make_shared<std::pair<std::string, std::vector<std::string>>>();
  app.add_option("IMAGE", options->first, "name or digest")->required();
  app.add_option("OUTPUT", options->second, "oci:DIR, oci-archive:FILE or docker-archive:FILE")
      ->required();
  app.footer("example: mlenv save jax-cpu docker-archive:jax-cpu.tar");
  return [options](Ui& ui) {
    const Image image = image_named(ui, options->first);
    const std::string& title = image.settings.labels.contains("org.opencontainers.image.title")
                                   ? image.settings.labels.at("org.opencontainers.image.title")
                                   : options->first;
    for (const std::string& text : options->second) {
      write_output(ui.store(), image, Reference::parse(title), Output::parse(text), ui.progress());
    }
    return 0;
  };
}

}  // namespace mlenv::cli
