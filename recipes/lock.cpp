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

std::vector<std::string> library_texts(const Recipe& recipe) {
  std::vector<std::string> texts;
  for (const RecipeLibrary& one : recipe.libraries) {
    texts.push_back(one.name + ' ' + one.version.text);
  }
  if (recipe.compiler) texts.emplace_back("nvcc");
  std::sort(texts.begin(), texts.end());
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

const LockedWheel* find_wheel(const std::vector<LockedWheel>& wheels, std::string_view name) {
  const auto found = std::find_if(wheels.begin(), wheels.end(),
                                  [&](const LockedWheel& one) { return one.name == name; });
  return found == wheels.end() ? nullptr : &*found;
}

const LockedSource* Lock::source_of(const LockedWheel& wheel) const {
  const auto found = std::find_if(sources.begin(), sources.end(), [&](const LockedSource& source) {
    return source.name == wheel.name;
  });
  return found == sources.end() ? nullptr : &*found;
}

std::string Lock::python_minor() const {
  const std::size_t first = python.find('.');
  return first == std::string::npos ? python : python.substr(0, python.find('.', first + 1));
}

std::string Lock::python_program() const {
  const std::string program = "python" + python_minor();
  if (interpreter) return std::string(kOwnPython) + "/bin/" + program;
  return base ? base->interpreter : "/usr/bin/" + program;
}

int least_revision(const Lock& lock) {
  const bool other_paths =
      std::any_of(lock.debs.begin(), lock.debs.end(),
                  [](const LockedDeb& deb) { return !deb.path.starts_with("pool/"); });
  const Request& request = lock.request;
  const bool listed =
      !request.requirements.empty() || !request.constraints.empty() || request.hashes;
  const bool whole = other_paths || listed || lock.base || lock.interpreter ||
                     !lock.sources.empty() || request.demands_of_cuda() ||
                     !lock.settings.run.empty() || !lock.settings.data.empty();
  if (!request.steering.empty()) return Lock::kSteering;
  return whole ? Lock::kWholeRecipe : Lock::kChecksumRevision;
}

Request request_of(const Recipe& recipe) {
  return {.base = recipe.base.text,
          .python = text_or_empty(recipe.python),
          .interpreter = recipe.sources.python ? recipe.sources.python->sha256 : "",
          .framework = text_or_empty(recipe.framework),
          .cuda = text_or_empty(recipe.cuda),
          .packages = sorted_texts(recipe.packages),
          .requirements = recipe.listed.requirement_texts(),
          .constraints = recipe.listed.constraint_texts(),
          .hashes = recipe.listed.hashes_digest(),
          .system = sorted_texts(recipe.system),
          .driver = text_or_empty(recipe.driver),
          .gpus = sorted_texts(recipe.gpus),
          .libraries = library_texts(recipe),
          .steering = locked_steering(recipe.steering)};
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

fs::path lock_path(const fs::path& recipe) { return with_ending(recipe, kLockEnd); }
fs::path built_path(const fs::path& recipe) { return with_ending(recipe, ".built"); }

}  // namespace mlenv
