// `sources:` of a recipe.
#include <algorithm>
#include <array>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "recipes/machine_config.hpp"
#include "recipes/recipe_reader.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 4> kSourceKeys = {"debian", "pypi", "python", "snapshots"};
constexpr std::array<std::string_view, 5> kArchiveKeys = {"uri", "suite", "components", "signed-by",
                                                          "check-valid-until"};
constexpr std::array<std::string_view, 2> kPythonKeys = {"url", "sha256"};

}  // namespace

std::vector<std::string_view> source_keys() { return {kSourceKeys.begin(), kSourceKeys.end()}; }
std::vector<std::string_view> archive_keys() { return {kArchiveKeys.begin(), kArchiveKeys.end()}; }
std::vector<std::string_view> python_source_keys() {
  return {kPythonKeys.begin(), kPythonKeys.end()};
}

/// http, https or file; without a login, because the recipe is a file that people share.
std::optional<std::string> RecipeReader::source_url(const YamlNode& node, std::string_view what) {
  const std::optional<Placed> text = values_.text(node, what, "https://mirror.example/…");
  if (!text) return std::nullopt;
  const std::string& url = text->text;
  const std::size_t start = url.find("://");
  const std::string scheme = start == std::string::npos ? "" : url.substr(0, start);
  const bool known = scheme == "http" || scheme == "https" || scheme == "file";
  if (!known || url.size() <= start + 3 || has_control(url) || url.find(' ') != std::string::npos) {
    values_.mistake(node, fmt::format("{} is not a URL that starts with `https://`, `http://` or "
                                      "`file://`",
                                      what));
    return std::nullopt;
  }
  const std::string_view authority =
      std::string_view(url).substr(start + 3, url.find('/', start + 3) - start - 3);
  if (authority.find('@') != std::string_view::npos) {
    values_.mistake(node, "a recipe must not hold a login; keep it in `~/.netrc`");
    return std::nullopt;
  }
  return url;
}

void RecipeReader::debian_source(const YamlNode& node) {
  RecipeSources::Debian source;
  if (node.kind == YamlNode::Kind::scalar) {
    if (auto url = source_url(node, "an archive of `debian`")) {
      source.uri = *url;
      recipe_.sources.debian.push_back(std::move(source));
    }
    return;
  }
  bool has_uri = false;
  for (const auto& [key, value] : values_.members(node, "an archive of `debian`", kArchiveKeys)) {
    if (value->kind == YamlNode::Kind::null && key != "uri") continue;
    if (key == "uri") {
      has_uri = true;
      source.uri = source_url(*value, "`uri`").value_or("");
    } else if (key == "check-valid-until") {
      source.check_valid_until = flag(*value, key);
    } else if (key == "components") {
      for (Placed& part : values_.texts(*value, "`components`", "[main]")) {
        source.components.push_back(std::move(part.text));
      }
    } else if (const auto text = values_.text(*value, '`' + key + '`', "…")) {
      (key == "suite" ? source.suite : source.signed_by) = text->text;
    }
  }
  if (!has_uri) values_.mistake(node, "`uri` is missing: the root of the archive");
  if (!source.signed_by.empty() && !is_clean_absolute_path(source.signed_by) &&
      !is_clean_relative_path(source.signed_by)) {
    values_.mistake(node, "`signed-by` is a keyring's path: in the recipe's folder, or absolute");
  }
  if (source.suite.ends_with('/')) {
    values_.mistake(node, "archives without `dists` and components are not supported");
  }
  recipe_.sources.debian.push_back(std::move(source));
}

void RecipeReader::snapshot_source(const YamlNode& node) {
  std::optional<std::string> url = source_url(node, "an archive of `snapshots`");
  if (!url) return;
  const std::string fault = fault_of_snapshot(*url);
  if (!fault.empty()) return values_.mistake(node, fault);
  recipe_.sources.snapshots.push_back(*std::move(url));
}

void RecipeReader::python_source(const YamlNode& node) {
  RecipeSources::Python python;
  for (const auto& [key, value] : values_.members(node, "`python` in `sources`", kPythonKeys)) {
    if (key == "url") {
      if (auto url = source_url(*value, "`url`")) {
        python.url = {*std::move(url), value->line, value->column};
      }
    } else if (const auto text = values_.text(*value, "`sha256`", "9f86d081884c7d65…")) {
      python.sha256 = text->text;
      try {
        (void)Digest::from_hex(python.sha256);
      } catch (const Error&) {
        values_.mistake(*value, "`sha256` is 64 lower-case hex digits, of the archive");
      }
    }
  }
  if (node.kind != YamlNode::Kind::map) return;
  const auto has = [&](std::string_view key) {
    return std::any_of(node.members.begin(), node.members.end(),
                       [&](const auto& member) { return member.key.text == key; });
  };
  if (!has("url")) values_.mistake(node, "`url` is missing: of an archive that holds a CPython");
  if (!has("sha256")) {
    values_.mistake(node, "`sha256` is missing: of the archive, so that it stays the same one");
  }
  recipe_.sources.python = std::move(python);
}

void RecipeReader::sources(const YamlNode& node) {
  for (const auto& [key, value] : values_.members(node, "`sources`", kSourceKeys)) {
    if (value->kind == YamlNode::Kind::null) continue;
    if (key == "python") {
      python_source(*value);
      continue;
    }
    const bool many = value->kind == YamlNode::Kind::list;
    const std::vector<YamlNode> items = many ? value->items : std::vector<YamlNode>{*value};
    for (const YamlNode& item : items) {
      if (key == "debian") {
        debian_source(item);
      } else if (key == "snapshots") {
        snapshot_source(item);
      } else if (auto url = source_url(item, "an index of `pypi`")) {
        recipe_.sources.pypi.push_back(std::move(*url));
      }
    }
  }
}

}  // namespace mlenv
