#include "cli/pull_from.hpp"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/http_url.hpp"
#include "base/process.hpp"
#include "base/progress.hpp"
#include "base/size_limits.hpp"
#include "images/image_index.hpp"
#include "images/platform.hpp"
#include "images/pull_source.hpp"
#include "images/registry.hpp"

namespace mlenv::cli {
namespace {

/// The registry itself, without mirrors; with tokens that are good for pulling alone.
RegistryOptions access_to(const Reference& where, bool plain_http) {
  RegistryOptions options = push_options(registry_options(plain_http), where);
  options.only_pull = true;
  return options;
}

Reference reference_of(const PullFromWords& words) {
  Reference where = Reference::parse(words.reference);
  if (where.host().empty()) {
    throw usage_error("no-registry", "`{}` names no registry to pull from", words.reference)
        .hint("name one: `--pull-from HOST/REPOSITORY`");
  }
  if (http::is_loopback(http::parse_url("https://" + where.host()).host)) {
    throw usage_error("bad-pull-from", "`{}` is another machine on each node", where.host())
        .hint("name the registry as nodes reach it");
  }
  return where;
}

/// Nothing but the repository is named: the image is the one of this digest.
bool names_no_image(const PullFromWords& words, const Reference& where) {
  return !where.digest() && !words.reference.ends_with(":" + where.tag());
}

/// Nodes get the image of this digest, whatever anything else is called.
void require_same_image(const Registry::Manifest& found, const Reference& where,
                        const Image& image) {
  if (found.digest == image.digest()) return;
  if (is_index(found.media_type, found.bytes)) {
    const ImageIndex index = parse_index(found.bytes);
    const bool listed = std::any_of(
        index.entries.begin(), index.entries.end(),
        [&](const ImageIndex::Entry& one) { return one.manifest.digest == image.digest(); });
    if (listed) return;
  }
  throw failure("other-image", "`{}` is another image than the one that nodes are to get",
                where.str())
      .because(fmt::format("there it is {}, here {}", found.digest.str(), image.digest().str()))
      .hint(fmt::format("`mlenv push {} {}` brings this one there; `mlenv pull {}` brings that one "
                        "here",
                        image.digest().str(), where.str(), where.str()));
}

}  // namespace

void add_pull_from(CLI::App& app, std::string& reference) {
  app.add_option("--pull-from", reference,
                 "nodes fetch it from this registry: HOST/REPOSITORY[:TAG|@DIGEST]")
      ->type_name("REF");
}

job::PullFrom pull_from_of(Ui& ui, const PullFromWords& words, const Image& image) {
  if (words.reference.empty()) return {};
  const Reference where = reference_of(words);
  return while_doing(fmt::format("looking for the image in `{}`", where.str()), [&] {
    Registry registry{ui.http(), where, access_to(where, words.plain_http)};
    if (!names_no_image(words, where)) {
      const auto found = registry.get_unresolved(where.manifest_name());
      if (!found) throw registry.no_image(where);
      require_same_image(*found, where, image);
    }
    const Registry::BlobAccess access = registry.blob_access(image.digest());
    return job::PullFrom{where.host() + "/" + where.repository(), access.plain_http,
                         own_executable().string()};
  });
}

Image image_without_layers(Ui& ui, const PullFromWords& words, const std::string& platform) {
  const Reference where = reference_of(words);
  return while_doing(fmt::format("looking for the image in `{}`", where.str()), [&] {
    RegistryOptions options = access_to(where, words.plain_http);
    options.platform = platform;
    Registry registry{ui.http(), where, options};
    std::optional<Registry::Manifest> found = registry.get_manifest(where.manifest_name());
    if (!found) throw registry.no_image(where);
    const Descriptor config = config_of_manifest(found->bytes);
    Store& store = ui.store();
    if (!store.has(config.digest)) {
      Activity activity{ui.progress(), "pull config", config.size_bytes};
      fetch_blob(store, registry, config, activity);
    }
    Image image =
        parse_image(std::move(found->bytes), store.read(config.digest, size_limit::kImageConfig));
    (void)store.put(image.manifest);
    return image;
  });
}

Action declare_registry_grant(CLI::App& app) {
  auto words = std::make_shared<PullFromWords>();
  app.add_option("REF", words->reference, "HOST/REPOSITORY@DIGEST")->required();
  app.add_flag("--plain-http", words->plain_http, "the registry has no TLS");
  return [words](Ui& ui) {
    const Reference where = Reference::parse(words->reference);
    if (where.host().empty() || !where.digest()) {
      throw usage_error("bad-reference", "`{}` names no registry and digest", words->reference);
    }
    Registry registry{ui.http(), where, access_to(where, words->plain_http)};
    const Registry::BlobAccess access = registry.blob_access(*where.digest());
    ui.answer(
        job::render_registry_grant({access.url, access.authorization, access.any_certificate}));
    return 0;
  };
}

}  // namespace mlenv::cli
