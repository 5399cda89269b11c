#include "recipes/resolve/base_image.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "images/platform.hpp"
#include "images/unpack.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/resolve/base_python.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// What Docker and runc use where an image sets none.
constexpr std::string_view kUsualPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool has_wheels(const Recipe& recipe) {
  return recipe.framework || !recipe.packages.empty() || !recipe.listed.requirements.empty();
}

Image fetch_files(const Recipe& recipe, ArchivedImage from, const std::string& platform,
                  const std::optional<Digest>& pinned, const BaseAccess& access) {
  if (recipe.path.has_parent_path()) from.path = recipe.folder() / from.path;
  return fetch_image(access.store, from, platform, pinned, access.progress);
}

Image fetch_remote(const Reference& from, const std::string& platform,
                   const std::optional<Digest>& pinned, const BaseAccess& access) {
  RegistryOptions options = access.registry;
  options.platform = platform;
  const Reference exact =
      pinned
          ? Reference::parse(fmt::format("{}/{}@{}", from.host(), from.repository(), pinned->str()))
          : from;
  return fetch_image(access.store, access.http, exact, options, access.progress);
}

Image fetch_base(const Recipe& recipe, const std::string& platform,
                 const std::optional<Digest>& pinned, const BaseAccess& access) {
  const auto read = parse_base_image(recipe.base.text);
  const auto* base = std::get_if<BaseImage>(&read);
  if (base == nullptr) throw recipe_error(recipe, recipe.base, std::get<std::string>(read));
  if (const auto* files = std::get_if<ArchivedImage>(base)) {
    return fetch_files(recipe, *files, platform, pinned, access);
  }
  return fetch_remote(std::get<Reference>(*base), platform, pinned, access);
}

Error gone(const Recipe& recipe, const Digest& pinned) {
  return failure("base-gone", "the base `{}` is not to be had as it was locked", recipe.base.text)
      .because(fmt::format("the lock names the image {}", pinned.str()))
      .hint("bring that image back, or run `mlenv lock --upgrade` to take the base as it is now");
}

Image fetch_pinned(const Recipe& recipe, const std::string& platform, const Digest& pinned,
                   const BaseAccess& access) {
  std::optional<Image> image;
  try {
    image = fetch_base(recipe, platform, pinned, access);
  } catch (const Error& error) {
    if (error.code() != "not-found" && error.code() != "absent") throw;
    Error better = gone(recipe, pinned);
    for (const std::string& frame : error.frames()) better.because(frame);
    throw Error{std::move(better)};
  }
  if (image->digest() != pinned) {
    throw gone(recipe, pinned).because(fmt::format("there is {} now", image->digest().str()));
  }
  return *std::move(image);
}

LockedBase locked_base(const Image& image) {
  LockedBase base{.manifest = image.digest(),
                  .config = image.config_descriptor,
                  .layers = image.layers,
                  .interpreter = {},
                  .glibc = {}};
  base.config.media_type = kConfigType;
  for (Layer& layer : base.layers) {
    const auto type = oci_layer_type(layer.blob.media_type);
    if (!type) {
      throw failure("bad-base",
                    "a layer of the base has the media type `{}`, which is none of a tar",
                    layer.blob.media_type)
          .hint("take an image whose layers are tars: plain, or compressed with gzip or zstd");
    }
    layer.blob.media_type = *type;
    layer.title.clear();
    layer.tar_bytes = 0;
  }
  return base;
}

void check_image(const Image& image, const Recipe& recipe, const std::string& platform) {
  const std::string found = image.settings.os + "/" + image.settings.architecture;
  if (found != platform) {
    throw failure("bad-base", "the base `{}` is an image for {}, and the lock is for {}",
                  recipe.base.text, found, platform)
        .hint(fmt::format("name an image for {}", platform));
  }
  if (image.layers.empty()) {
    throw failure("bad-base", "the base `{}` has no layers", recipe.base.text);
  }
}

std::string path_of(const Image& image) {
  for (const std::string& variable : image.settings.env) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return std::string(kUsualPath);
}

std::string plain_word(const std::string& word) {
  const bool fine = is_image_name(word) && word.find('/') == std::string::npos;
  return fine ? word : std::string{};
}

class BaseFacts {
 public:
  BaseFacts(const Recipe& recipe, const Image& image, const StackedTrees& files)
      : recipe_(recipe),
        path_(path_of(image)),
        architecture_(image.settings.architecture),
        files_(files) {}

  std::optional<Conflict> read(FoundBase& found) {
    found.distribution = plain_word(os_release_value(files_, "ID"));
    found.suite = plain_word(os_release_value(files_, "VERSION_CODENAME"));
    found.base.glibc = base_glibc(files_);
    if (!recipe_.system.empty()) {
      auto system = read_base_system(files_, architecture_);
      if (const auto* why = std::get_if<std::string>(&system)) return no_system(*why);
      found.system = std::get<BaseSystem>(std::move(system));
    }
    if (!recipe_.wants_python()) return std::nullopt;
    const std::string name = recipe_.python ? "python" + recipe_.python->text : "python3";
    const std::optional<BasePython> python = base_python(files_, path_, name);
    if (!python && !found.system) return no_python(name);
    if (python && python->version.empty()) return odd_python(*python);
    if (has_wheels(recipe_) && found.base.glibc.empty()) return no_glibc();
    if (!python) {
      found.lacks_python = no_python(name);
      return std::nullopt;
    }
    found.base.interpreter = python->interpreter;
    found.python = python->version;
    return std::nullopt;
  }

 private:
  Conflict conflict(std::string headline, const Placed& place, std::string_view fact) const {
    Conflict conflict;
    conflict.headline = std::move(headline);
    conflict.facts.push_back(
        shown_mistake(recipe_.path, recipe_.source, place.line, place.column, fact));
    return conflict;
  }

  Conflict no_python(const std::string& name) const {
    if (recipe_.python) {
      if (const auto other = base_python(files_, path_, "python3")) return other_python(*other);
    }
    Conflict answer = conflict(
        fmt::format("`base: {}` has no Python, and the recipe needs one", recipe_.base.text),
        recipe_.base, fmt::format("there is no program `{}` on the image's PATH", name));
    answer.facts.push_back(fmt::format("its PATH is {}", path_));
    const bool takes_packages = files_.resolve("var/lib/dpkg/status").has_value();
    answer.hint = fmt::format(
        "take an image that holds Python, {}or a base made from packages, as "
        "`debian:bookworm`, which brings it along",
        takes_packages ? "add it with `system: [python3]`, " : "");
    return answer;
  }

  Conflict other_python(const BasePython& other) const {
    const std::string version = other.version.empty() ? "another" : other.version;
    Conflict answer = conflict(fmt::format("`base: {}` has Python {}, the recipe wants {}",
                                           recipe_.base.text, version, recipe_.python->text),
                               *recipe_.python,
                               fmt::format("the recipe asks for Python {}", recipe_.python->text));
    answer.facts.push_back(fmt::format("the image's `python3` is `{}`", other.interpreter));
    const std::size_t dot = version.find('.', version.find('.') + 1);
    if (!other.version.empty()) {
      answer.hint =
          fmt::format("write `python: \"{}\"`, or take another image", version.substr(0, dot));
    }
    return answer;
  }

  Conflict odd_python(const BasePython& python) const {
    Conflict answer = conflict(
        fmt::format("`base: {}` has a Python that wheels cannot be chosen for", recipe_.base.text),
        recipe_.base, fmt::format("the image's Python is `{}`", python.interpreter));
    answer.facts.emplace_back("its files do not tell a version of CPython");
    answer.hint = "take an image with CPython 3, or a base made from packages";
    return answer;
  }

  Conflict no_system(std::string_view why) const {
    Conflict answer = conflict(
        fmt::format("`base: {}` takes no Debian packages, and `system` asks for some",
                    recipe_.base.text),
        recipe_.system.front(), fmt::format("the recipe asks for `{}`", recipe_.system[0].text));
    answer.facts.emplace_back(why);
    answer.hint =
        "leave `system` out and install what is missing where that image is made, or take an image "
        "of Debian or Ubuntu";
    return answer;
  }

  Conflict no_glibc() const {
    const bool musl = has_musl(files_);
    Conflict answer =
        conflict(fmt::format("`base: {}` cannot run the wheels of the recipe", recipe_.base.text),
                 recipe_.base,
                 musl ? "its C library is musl, and wheels are chosen for glibc"
                      : "it has no glibc, which wheels need");
    answer.hint = "take an image with glibc, as Debian, Ubuntu and Fedora have it";
    return answer;
  }

  const Recipe& recipe_;
  std::string path_;
  std::string architecture_;
  const StackedTrees& files_;
};

}  // namespace

std::variant<FoundBase, Conflict> find_base(const Recipe& recipe, const std::string& platform,
                                            const std::optional<Digest>& pinned,
                                            const BaseAccess& access) {
  const Image image = pinned ? fetch_pinned(recipe, platform, *pinned, access)
                             : fetch_base(recipe, platform, std::nullopt, access);
  check_image(image, recipe, platform);
  FoundBase found{.base = locked_base(image),
                  .distribution = {},
                  .suite = {},
                  .python = {},
                  .system = {},
                  .lacks_python = {}};
  const StackedTrees files{unpack_image(access.store, image, access.progress)};
  if (auto conflict = BaseFacts{recipe, image, files}.read(found)) return *std::move(conflict);
  return found;
}

void provide_base(const Recipe& recipe, const Lock& lock, const BaseAccess& access) {
  const LockedBase& base = lock.base.value();
  const auto has = [&](const Descriptor& blob) { return access.store.has(blob.digest); };
  const bool complete =
      has(base.config) && std::all_of(base.layers.begin(), base.layers.end(),
                                      [&](const Layer& layer) { return has(layer.blob); });
  if (!complete) (void)fetch_pinned(recipe, lock.platform, base.manifest, access);
}

std::vector<DebianSource> package_sources(const Recipe& recipe, const Lock& lock,
                                          const BaseAccess& access) {
  provide_base(recipe, lock, access);
  std::vector<fs::path> trees;
  for (const Layer& layer : lock.base.value().layers) {
    trees.push_back(unpack_layer(access.store, layer, access.progress));
  }
  const auto settings = base_settings(StackedTrees{trees});
  return sources_on_base(recipe, lock.distribution, lock.suite, settings->path());
}

}  // namespace mlenv
