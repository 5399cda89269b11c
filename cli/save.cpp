#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/outputs.hpp"

namespace mlenv::cli {
namespace {

constexpr const char* kTitleLabel = "org.opencontainers.image.title";

struct SaveWords {
  std::string image;
  std::string platform;  ///< of an index; empty: all of it
  std::vector<std::string> outputs;
};

std::optional<Reference> reference_or_none(std::string_view text) {
  try {
    return Reference::parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The name that was asked for; of a digest the image's title, where that is fit for a name.
Reference name_in_files(Ui& ui, const ImageSet& image, const std::string& asked) {
  const std::vector<Store::Name> names = ui.store().names();
  if (const auto reference = reference_or_none(asked)) {
    const std::string listed = listed_name(*reference);
    const bool is_name = std::any_of(names.begin(), names.end(),
                                     [&](const Store::Name& one) { return one.name == listed; });
    if (is_name) return *reference;
  }
  const auto& labels = image.images.front().settings.labels;
  if (const auto title = labels.find(kTitleLabel); title != labels.end()) {
    if (auto reference = reference_or_none(title->second)) return *std::move(reference);
  }
  return Reference::parse("image@" + image.digest().str());
}

int save_command(const SaveWords& options, Ui& ui) {
  const std::vector<Output> outputs = chosen_outputs(ui, options.outputs);
  const ImageSet image = options.platform.empty()
                             ? image_set_named(ui, options.image)
                             : image_named(ui, options.image, options.platform);
  if (image.index) {
    for (const Output& output : outputs) output.require_index();
  }
  const Reference name = name_in_files(ui, image, options.image);
  for (const Output& output : outputs) {
    write_output(ui.store(), image, name, output, ui.progress());
  }
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.save/1"},
                         {"name", name.str()},
                         {"digest", image.digest().str()},
                         {"outputs", options.outputs}}));
  }
  return 0;
}

}  // namespace

std::vector<Output> chosen_outputs(Ui& ui, const std::vector<std::string>& texts) {
  std::vector<Output> outputs;
  outputs.reserve(texts.size());
  for (const std::string& text : texts) outputs.push_back(Output::parse(text));
  for (const Output& output : outputs) output.check();
  const auto streams = std::count_if(outputs.begin(), outputs.end(),
                                     [](const Output& output) { return output.is_stdout(); });
  if (streams > 1) {
    throw usage_error("bad-output", "only one image file can go to standard output")
        .hint("give the others a file");
  }
  ui.answers_aside = streams == 1;
  return outputs;
}

Action declare_save(CLI::App& app) {
  auto options = std::make_shared<SaveWords>();
  take_word_of(app.add_option("IMAGE", options->image, "name or digest")->required(),
               WordKind::image);
  take_word_of(
      app.add_option("OUTPUT", options->outputs,
                     "oci:DIR, oci-archive:FILE or docker-archive:FILE; FILE `-`: standard output")
          ->required(),
      WordKind::output);
  app.add_option("--platform", options->platform, "of an index the image for OS/ARCHITECTURE alone")
      ->type_name("PLATFORM");
  app.footer("example: mlenv save jax-cpu docker-archive:- | docker load");
  return [options](Ui& ui) { return save_command(*options, ui); };
}

}  // namespace mlenv::cli
