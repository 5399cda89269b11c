// Names given and taken away: tag, rm.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kDigestAlgorithm = "sha256";

/// `sha256:…` reads as a repository and a tag, but whoever types it means a digest.
bool looks_like_digest(const Reference& name) {
  return name.host().empty() && name.repository() == kDigestAlgorithm;
}

struct TagOptions {
  std::string image;
  std::string name;
};

int tag_command(const TagOptions& options, Ui& ui) {
  const Reference name = name_to_give(options.name);
  const Digest digest = image_set_named(ui, options.image).digest();
  if (name.digest() && *name.digest() != digest) {
    throw usage_error("bad-reference", "`{}` names another image", options.name)
        .because(fmt::format("`{}` is {}", options.image, digest.str()));
  }
  ui.store().tag(name, digest);
  if (ui.options.json) {
    ui.answer(canonical(
        {{"schema", "mlenv.tag/1"}, {"name", listed_name(name)}, {"digest", digest.str()}}));
  }
  return 0;
}

Error no_such_name(const std::string& asked, const std::vector<Store::Name>& names) {
  std::vector<std::string> listed;
  for (const Store::Name& one : names) listed.push_back(one.name);
  const std::string near = did_you_mean(nearest_word(listed_name(Reference::parse(asked)), listed));
  return failure("not-found", "there is no name `{}` in the store", asked)
      .hint(near.empty() ? "`mlenv images` lists the names" : near);
}

/// The references of all names, each once; nothing has been removed when it throws.
std::vector<Reference> known_references(const std::vector<std::string>& asked,
                                        const std::vector<Store::Name>& names) {
  std::vector<Reference> found;
  for (const std::string& text : asked) {
    Reference reference = Reference::parse(text);
    if (looks_like_digest(reference)) {
      throw usage_error("bad-reference", "`{}` is a digest, and `rm` takes names away", text)
          .hint("`mlenv images` lists the names");
    }
    const std::string listed = listed_name(reference);
    const auto is_it = [&](const Store::Name& one) { return one.name == listed; };
    if (std::none_of(names.begin(), names.end(), is_it)) throw no_such_name(text, names);
    const bool again = std::any_of(found.begin(), found.end(), [&](const Reference& one) {
      return listed_name(one) == listed;
    });
    if (!again) found.push_back(std::move(reference));
  }
  return found;
}

int rm_command(const std::vector<std::string>& asked, Ui& ui) {
  nlohmann::json removed = nlohmann::json::array();
  for (const Reference& name : known_references(asked, ui.store().names())) {
    // False: another process took it away just now, which is as good.
    while_doing(
        fmt::format("taking `{}` out of `{}/names`", listed_name(name), ui.store().root().string()),
        [&] { (void)ui.store().untag(name); });
    removed.push_back(listed_name(name));
  }
  if (ui.options.json) {
    ui.answer(canonical({{"schema", "mlenv.rm/1"}, {"removed", std::move(removed)}}));
  }
  return 0;
}

}  // namespace

Reference name_to_give(const std::string& text) {
  Reference name = Reference::parse(text);
  if (!looks_like_digest(name)) return name;
  throw usage_error("bad-reference", "`{}` cannot be a name", text)
      .because("an image's digest follows from its content; it is not given")
      .hint("write a name such as `train:v1`");
}

Action declare_tag(CLI::App& app) {
  auto options = std::make_shared<TagOptions>();
  take_word_of(app.add_option("IMAGE", options->image, "name or digest")->required(),
               WordKind::image);
  app.add_option("NAME", options->name, "the name to give it")->required();
  app.footer("example: mlenv tag jax-cpu registry.example.org/team/jax-cpu:v1");
  return [options](Ui& ui) { return tag_command(*options, ui); };
}

Action declare_rm(CLI::App& app) {
  auto names = std::make_shared<std::vector<std::string>>();
  take_word_of(
      app.add_option("NAME", *names, "names to take away; `mlenv gc` frees the room")->required(),
      WordKind::image);
  app.footer("example: mlenv rm jax-cpu:latest");
  return [names](Ui& ui) { return rm_command(*names, ui); };
}

}  // namespace mlenv::cli
