#include "recipes/image_sources.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/distribution.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSourcesFile = "etc/apt/sources.list.d/mlenv.sources";
constexpr std::string_view kNote =
    "# The recipe's own package sources, put here by `mlenv build`\n";
constexpr std::string_view kSystemKeyrings = "/usr/share/keyrings/";
constexpr std::string_view kArmour = "-----BEGIN PGP";

bool is_local(std::string_view url) { return url.starts_with("file:"); }

/// apt tells armoured keyrings from binary ones by their names' ending (sources.list(5)).
std::string keyring_name(const fs::path& path, std::string_view keys) {
  const bool armoured = keys.starts_with(kArmour);
  if (armoured != (path.extension() == ".asc") && (armoured || path.extension() != ".gpg")) {
    return path.stem().string() + (armoured ? ".asc" : ".gpg");
  }
  return path.filename().string();
}

/// Keyrings of the distribution's packages are in the image; others are brought along.
std::string keyring_in_image(const Recipe& recipe, const RecipeSources::Debian& source,
                             std::vector<ImageFile>& files) {
  if (source.signed_by.empty()) {
    const Distribution* distribution = find_distribution(recipe.distribution);
    return fmt::format("{}{}.gpg", kSystemKeyrings,
                       distribution == nullptr ? "debian-archive-keyring" : distribution->keyring);
  }
  if (source.signed_by.starts_with(kSystemKeyrings)) return source.signed_by;
  std::string keys = while_doing("reading the keyring that `signed-by` names", [&] {
    return read_small_file(recipe.keyring_path(source), size_limit::kKeyring);
  });
  std::string target = "etc/apt/keyrings/" + keyring_name(source.signed_by, keys);
  const auto at = [&] {
    return std::find_if(files.begin(), files.end(),
                        [&](const ImageFile& file) { return file.path == target; });
  };
  if (at() != files.end() && at()->text != keys) {  // another one of the same name
    const fs::path path{target};
    target = path.parent_path() / fmt::format("{}-{}{}", path.stem().string(),
                                              Digest::of(keys).brief(), path.extension().string());
  }
  if (at() == files.end()) files.push_back({target, std::move(keys)});
  return "/" + target;
}

std::string components_of(const Recipe& recipe, const RecipeSources::Debian& source) {
  if (!source.components.empty()) return join(source.components, " ");
  const Distribution* distribution = find_distribution(recipe.distribution);
  if (distribution == nullptr) return "main";
  return join({distribution->usual.begin(), distribution->usual.end()}, " ");
}

void add_apt(const Recipe& recipe, std::vector<ImageFile>& files) {
  std::string text;
  for (const RecipeSources::Debian& source : recipe.sources.debian) {
    if (is_local(source.uri)) continue;
    text += fmt::format("\nTypes: deb\nURIs: {}\nSuites: {}\nComponents: {}\nSigned-By: {}\n",
                        source.uri, source.suite.empty() ? recipe.suite : source.suite,
                        components_of(recipe, source), keyring_in_image(recipe, source, files));
    if (!source.check_valid_until) text += "Check-Valid-Until: no\n";
  }
  if (text.empty()) return;
  const std::string_view name = recipe.has_own_base_source() ? kSourcesFile : kExtraSources;
  files.push_back({std::string(name), std::string(kNote) + text});
}

/// The first index is the default one; uv takes from the others first, pip has no order.
void add_python(const Recipe& recipe, std::vector<ImageFile>& files) {
  std::vector<std::string> urls;
  for (const std::string& url : recipe.sources.pypi) {
    if (!is_local(url)) urls.push_back(url);
  }
  if (urls.empty()) return;
  std::string pip = fmt::format("{}[global]\nindex-url = {}\n", kNote, urls[0]);
  std::string uv =
      fmt::format("{}\n[[index]]\nurl = {}\ndefault = true\n", kNote, toml_text(urls[0]));
  if (urls.size() > 1) pip += "extra-index-url =\n";
  for (std::size_t i = 1; i < urls.size(); ++i) {
    pip += fmt::format("    {}\n", urls[i]);
    uv += fmt::format("\n[[index]]\nurl = {}\n", toml_text(urls[i]));
  }
  files.push_back({"etc/pip.conf", std::move(pip)});
  files.push_back({"etc/uv/uv.toml", std::move(uv)});
}

}  // namespace

std::vector<ImageFile> image_sources(const Recipe& recipe) {
  std::vector<ImageFile> files;
  add_apt(recipe, files);
  add_python(recipe, files);
  std::sort(files.begin(), files.end(),
            [](const ImageFile& a, const ImageFile& b) { return a.path < b.path; });
  return files;
}

std::optional<Digest> digest_of(const std::vector<ImageFile>& files) {
  if (files.empty()) return std::nullopt;
  std::string all;
  for (const ImageFile& file : files) {
    all += fmt::format("{}:{}\n{}:{}\n", file.path.size(), file.path, file.text.size(), file.text);
  }
  return Digest::of(all);
}

}  // namespace mlenv
