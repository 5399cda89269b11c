#include "recipes/lock.hpp"

#include <algorithm>

#include "recipes/image_sources.hpp"

namespace mlenv {
namespace {

std::vector<std::string> sorted_texts(const std::vector<Placed>& all) {
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const Placed& one : all) texts.push_back(one.text);
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

std::string text_or_empty(const std::optional<Placed>& one) { return one ? one->text : ""; }

fs::path with_ending(const fs::path& recipe, std::string_view ending) {
  fs::path changed = recipe;
  return changed.replace_extension(ending);
}

std::vector<LockedData> data_of(const Recipe& recipe) {
  std::vector<LockedData> data;
  for (const RecipeData& one : recipe.data) {
    data.push_back({one.name.text, one.to, one.digest, one.stage});
  }
  std::sort(data.begin(), data.end(),
            [](const LockedData& a, const LockedData& b) { return a.name < b.name; });
  return data;
}

}  // namespace

std::string Lock::python_minor() const {
  const std::size_t first = python.find('.');
  return first == std::string::npos ? python : python.substr(0, python.find('.', first + 1));
}

Request request_of(const Recipe& recipe) {
  return {.base = recipe.base.text,
          .python = text_or_empty(recipe.python),
          .framework = text_or_empty(recipe.framework),
          .cuda = text_or_empty(recipe.cuda),
          .packages = sorted_texts(recipe.packages),
          .system = sorted_texts(recipe.system)};
}

Settings settings_of(const Recipe& recipe) {
  return {.name = recipe.name,
          .env = recipe.env,
          .workdir = recipe.workdir,
          .command = recipe.command,
          .bytecode = recipe.bytecode,
          .sources = digest_of(image_sources(recipe)),
          .run = recipe.run,
          .data = data_of(recipe)};
}

int revision_of(const Settings& settings) {
  constexpr int kRunRevision = 2;
  const bool plain = settings.run.empty() && settings.data.empty();
  return plain ? Lock::kChecksumRevision : kRunRevision;
}

fs::path lock_path(const fs::path& recipe) { return with_ending(recipe, ".lock"); }
fs::path built_path(const fs::path& recipe) { return with_ending(recipe, ".built"); }

}  // namespace mlenv
