#include "builder/project_files.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "builder/project_walk.hpp"
#include "recipes/lock.hpp"
#include "recipes/project_path.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Where a source lies.
fs::path real_source(const Recipe& recipe, const RecipeFile& file) {
  auto found = find_project_path(recipe.folder(), file.source.text);
  if (const auto* wrong = std::get_if<PathMistake>(&found)) {
    throw recipe_error(recipe, file.source,
                       fmt::format("`{}` {}", file.source.text, wrong->message));
  }
  fs::path& real = std::get<fs::path>(found);
  for (const fs::path& data : data_places(recipe)) {
    if (!is_beneath(real.native(), data.native())) continue;
    throw recipe_error(recipe, file.source,
                       fmt::format("`{}` is data, which is never in the image", file.source.text));
  }
  return std::move(real);
}

void hash_files(std::vector<Found>& all, Pool& pool) {
  std::vector<ProjectFile*> files;
  for (Found& found : all) {
    for (ProjectFile& file : found.files) {
      if (file.kind == ProjectFile::Kind::file) files.push_back(&file);
    }
  }
  pool.for_each(files.size(), [&](std::size_t i) { hash_file(*files[i]); });
}

/// No file where another source puts something else, or needs a folder. What two lines copy from
/// one place to one place (`.` and `requirements.txt`) is left to the first.
// NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
void check_meetings(const Recipe& recipe, std::vector<Found>& all) {
  struct Place {
    const Found* source;
    const ProjectFile* file;
  };
  std::map<std::string_view, Place> taken;
  const auto refuse = [&](const Found& source, const ProjectFile& file, const Place& other) {
    throw recipe_error(recipe, source.recipe_file->source,
                       fmt::format("`{}` would become `/{}`, and `{}` `/{}`", file.shown, file.path,
                                   other.file->shown, other.file->path));
  };
  std::set<const ProjectFile*> twice;
  for (const Found& source : all) {
    for (const ProjectFile& file : source.files) {
      const auto [other, fresh] = taken.emplace(file.path, Place{&source, &file});
      if (fresh) continue;
      const ProjectFile& first = *other->second.file;
      if (file.kind == ProjectFile::Kind::folder && first.kind == file.kind) continue;
      if (file.kind != first.kind || file.shown != first.shown) {
        refuse(source, file, other->second);
      }
      twice.insert(&file);
    }
  }
  for (const Found& source : all) {
    for (const ProjectFile& file : source.files) {
      const std::string_view path = file.path;
      for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
           slash = path.find('/', slash + 1)) {
        const auto above = taken.find(path.substr(0, slash));
        if (above == taken.end() || above->second.file->kind == ProjectFile::Kind::folder) continue;
        refuse(source, file, above->second);
      }
    }
  }
  for (Found& source : all) {
    std::vector<ProjectFile> kept;
    for (ProjectFile& file : source.files) {
      if (!twice.contains(&file)) kept.push_back(std::move(file));
    }
    source.files = std::move(kept);
  }
  std::erase_if(all, [](const Found& source) { return source.files.empty(); });
}

Digest files_digest(const std::vector<ProjectFile>& files) {
  std::string text = "mlenv files 1\n";
  for (const ProjectFile& file : files) {
    const char kind = file.kind == ProjectFile::Kind::folder    ? 'd'
                      : file.kind == ProjectFile::Kind::symlink ? 'l'
                      : file.executable                         ? 'x'
                                                                : 'f';
    const std::string what = file.content ? file.content->hex() : file.link;
    text += fmt::format("{} {}:{} {}:{}\n", kind, file.path.size(), file.path, what.size(), what);
  }
  return Digest::of(text);
}

std::string title_of(const std::vector<Found*>& sources) {
  if (sources.size() > 1) return "project files";
  return "project files at " + sources.front()->target;
}

FilesPart make_part(const std::vector<Found*>& sources) {
  std::vector<ProjectFile> files;
  for (Found* source : sources) {
    std::move(source->files.begin(), source->files.end(), std::back_inserter(files));
  }
  std::sort(files.begin(), files.end(),
            [](const ProjectFile& a, const ProjectFile& b) { return a.path < b.path; });
  // What two sources have in common are folders.
  files.erase(
      std::unique(files.begin(), files.end(),
                  [](const ProjectFile& a, const ProjectFile& b) { return a.path == b.path; }),
      files.end());
  const Digest digest = files_digest(files);
  return {title_of(sources), std::move(files), digest};
}

std::vector<FilesPart> into_parts(std::vector<Found>& all) {
  std::uint64_t bound = kOwnFilesBytes;
  const auto is_large = [&](const Found& found) { return found.bytes() >= bound; };
  while (std::count_if(all.begin(), all.end(), is_large) >
         static_cast<std::ptrdiff_t>(kOwnFilesLayers)) {
    bound *= 2;
  }
  std::vector<FilesPart> parts;
  std::vector<Found*> shared;
  for (Found& found : all) {
    if (is_large(found)) {
      parts.push_back(make_part({&found}));
    } else {
      shared.push_back(&found);
    }
  }
  if (!shared.empty()) parts.push_back(make_part(shared));
  return parts;
}

}  // namespace

void require_files(const Recipe& recipe) {
  if (recipe.files.empty()) return;
  for (const RecipeFile& file : recipe.files) real_source(recipe, file);
  read_ignores(recipe.folder());
}

std::optional<std::string> copied_place(const Recipe& recipe, const fs::path& path) {
  if (recipe.files.empty()) return std::nullopt;
  std::error_code error;
  const fs::path folder = fs::canonical(recipe.folder(), error);
  const fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return std::nullopt;  // what is wrong there is told by whoever writes there
  fs::path inside = place.lexically_relative(folder);
  if (!inside.has_filename()) inside = inside.parent_path();
  std::string shown = inside.string();
  if (shown.empty() || *inside.begin() == "..") return std::nullopt;
  const ProjectIgnores ignores = read_ignores(recipe.folder());
  for (const RecipeFile& file : recipe.files) {
    const std::string& source = file.source.text;
    const bool is_below = source == "." || (shown + '/').starts_with(source + '/');
    if (!is_below) continue;
    const IgnoreRules::Fate fate = fate_of(ignores.rules, shown);
    if (!fate.left_out() || ignores.rules.may_return(shown, fate)) return shown;
  }
  return std::nullopt;
}

ProjectFiles collect_files(const Recipe& recipe, Pool& pool) {
  ProjectFiles project;
  if (recipe.files.empty()) return project;
  const ProjectIgnores ignores = read_ignores(recipe.folder());
  project.ignore_file = ignores.file;
  const std::string record = built_path(recipe.path).filename().string();
  std::vector<Found> all;
  for (const RecipeFile& file : recipe.files) {
    all.push_back(walk_source(recipe, file, real_source(recipe, file), ignores, record));
    std::vector<std::string>& secrets = all.back().secrets;
    std::move(secrets.begin(), secrets.end(), std::back_inserter(project.secrets));
  }
  std::sort(project.secrets.begin(), project.secrets.end());
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return std::tie(a.target, a.recipe_file->source.text) <
           std::tie(b.target, b.recipe_file->source.text);
  });
  check_meetings(recipe, all);
  hash_files(all, pool);
  project.parts = into_parts(all);
  std::string text = "mlenv project 1\n";
  for (const FilesPart& part : project.parts) {
    text += fmt::format("{}:{} {}\n", part.title.size(), part.title, part.digest.hex());
  }
  project.digest = Digest::of(text);
  return project;
}

}  // namespace mlenv
