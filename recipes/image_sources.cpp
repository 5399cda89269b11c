#include "recipes/image_sources.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kNote =
    "# The recipe's own package sources, put here by `mlenv build`\n";
constexpr std::string_view kSystemKeyrings = "/usr/share/keyrings/";

bool is_local(std::string_view url) { return url.starts_with("file:"); }

/// Keyrings of the distribution's packages are in the image; others are brought along.
std::string keyring_in_image(const std::string& path, std::vector<ImageFile>& files) {
  if (path.empty()) return "/usr/share/keyrings/debian-archive-keyring.gpg";
  if (path.starts_with(kSystemKeyrings)) return path;
  const std::string target = "etc/apt/keyrings/" + fs::path(path).filename().string();
  const bool there = std::any_of(files.begin(), files.end(),
                                 [&](const ImageFile& file) { return file.path == target; });
  if (!there) {
    files.push_back({target, while_doing("reading the keyring that `signed-by` names",
                                         [&] { return read_file(path); })});
  }
  return "/" + target;
}

void add_apt(const Recipe& recipe, std::vector<ImageFile>& files) {
  std::string text;
  for (const RecipeSources::Debian& source : recipe.sources.debian) {
    if (is_local(source.uri)) continue;
    const std::vector<std::string> main{"main"};
    text += fmt::format("\nTypes: deb\nURIs: {}\nSuites: {}\nComponents: {}\nSigned-By: {}\n",
                        source.uri, source.suite.empty() ? recipe.suite : source.suite,
                        join(source.components.empty() ? main : source.components, " "),
                        keyring_in_image(source.signed_by, files));
  }
  if (text.empty()) return;
  files.push_back({"etc/apt/sources.list.d/mlenv.sources", std::string(kNote) + text});
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
