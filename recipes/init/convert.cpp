#include "recipes/init/convert.hpp"

#include <array>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/compose_service.hpp"
#include "recipes/init/conda_packages.hpp"
#include "recipes/init/convert_folder.hpp"
#include "recipes/init/convert_pixi.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/project_install.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/project_name.hpp"
#include "recipes/project_path.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMostSourceBytes = 4 << 20;

Error not_readable(const fs::path& path, std::string_view why) {
  return usage_error("source-invalid", "`{}` {}", path.string(), why);
}

std::string source_text(const fs::path& path) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    throw not_readable(path, "is a folder").hint("name the file to convert");
  }
  if (fs::exists(path, unknown) && !fs::is_regular_file(path, unknown)) {
    throw not_readable(path, "is not a regular file");
  }
  if (fs::exists(path, unknown) && mlenv::file_size(path) > kMostSourceBytes) {
    throw not_readable(path, "is larger than 4 MiB, which no list of packages is");
  }
  std::string text = decoded_text(read_small_file(path, size_limit::kConverted));
  const std::size_t fault = utf8_fault(text);
  if (fault != std::string::npos || text.find('\0') != std::string::npos) {
    throw not_readable(path, "is not UTF-8 text");
  }
  return text;
}

}  // namespace

ConversionSource read_source(const fs::path& path, const Conversion& to) {
  to.check_source(path);
  return {path, path.lexically_normal().string(), source_text(path)};
}

std::string path_from_recipe(const fs::path& file, std::string_view path, const Conversion& to) {
  std::error_code unknown;
  const fs::path recipe =
      fs::weakly_canonical(to.folder().empty() ? fs::path(".") : to.folder(), unknown);
  const fs::path project = fs::weakly_canonical(fs::absolute(file, unknown).parent_path(), unknown);
  const fs::path between = project.lexically_relative(recipe);
  if (between.empty() || between == "." || fs::path(path).is_absolute()) return std::string(path);
  return (between / path).lexically_normal().string();
}

bool comes_in_builds(std::string_view package) {
  constexpr std::array<std::string_view, 6> kPackages = {"torch", "torchvision", "torchaudio",
                                                         "jax",   "jaxlib",      "tensorflow"};
  return is_among(kPackages, normalise_wheel_name(package));
}

std::string_view format_name(SourceFormat format) {
  switch (format) {
    case SourceFormat::requirements:
      return "a requirements file";
    case SourceFormat::conda:
      return "a conda environment";
    case SourceFormat::dockerfile:
      return "a Dockerfile";
    case SourceFormat::cog:
      return "a Cog configuration";
    case SourceFormat::pyproject:
    case SourceFormat::setup:
    case SourceFormat::pipfile:
    case SourceFormat::project_lock:
    case SourceFormat::pylock:
    case SourceFormat::pixi:
      return "a Python project";
    case SourceFormat::compose:
      return "a file of Docker Compose";
    case SourceFormat::devcontainer:
      return "a development container";
    case SourceFormat::notebook:
      return "a notebook";
    case SourceFormat::space:
      return "a Space";
    case SourceFormat::beside:
      return "a folder of Binder's";
  }
  return "";
}

std::optional<SourceFormat> format_of(const fs::path& path) {
  const std::string name = to_lower(path.filename().string());
  const std::string ending = to_lower(path.extension().string());
  if (name == "pyproject.toml") return SourceFormat::pyproject;
  if (name == "cog.yaml" || name == "cog.yml") return SourceFormat::cog;
  const bool docker = name.starts_with("dockerfile") || name.starts_with("containerfile");
  if (docker || ending == ".dockerfile" || ending == ".containerfile") {
    return SourceFormat::dockerfile;
  }
  if (name == "setup.py" || name == "setup.cfg") return SourceFormat::setup;
  if (name == "pipfile" || name == "pipfile.lock") return SourceFormat::pipfile;
  if (name == "uv.lock" || name == "poetry.lock" || name == "pdm.lock") {
    return SourceFormat::project_lock;
  }
  if (name.starts_with("pylock.") && ending == ".toml") return SourceFormat::pylock;
  if (name == "pixi.toml" || name == "pixi.lock") return SourceFormat::pixi;
  if (name.ends_with("devcontainer.json")) return SourceFormat::devcontainer;
  if (ending == ".ipynb") return SourceFormat::notebook;
  if (name == "readme.md") return SourceFormat::space;
  if (ending == ".yaml" || ending == ".yml") return SourceFormat::conda;
  const bool explicit_lock = name.starts_with("conda-") && ending == ".lock";  // conda-lock's
  if (ending == ".txt" || ending == ".in" || explicit_lock) return SourceFormat::requirements;
  return std::nullopt;
}

namespace {

void convert_lock(const ConversionSource& source, Conversion& to) {
  const std::string name = source.path.filename().string();
  using Tool = ProjectInstall::Tool;
  const Tool tool = name == "uv.lock" ? Tool::uv : name == "poetry.lock" ? Tool::poetry : Tool::pdm;
  const fs::path folder = source.path.parent_path();
  std::error_code unknown;
  if (tool != Tool::uv && !fs::is_regular_file(folder / "pyproject.toml", unknown)) {
    return convert_pinned_lock(source, {{}, {"main", "default"}}, to);
  }
  install_project({source.shown, 0}, source.shown, {tool, folder}, to);
  if (const auto own = project_name(folder)) to.draft.name = image_name_from(*own);
}

void convert_source(SourceFormat format, const ConversionSource& source, Conversion& to) {
  switch (format) {
    case SourceFormat::requirements:
      if (is_conda_list(source.text)) return convert_conda_list(source.shown, source.text, to);
      to.draft.wants_python = true;
      return to.requirements(source.path, source.shown, source.text);
    case SourceFormat::conda:
      return convert_conda(source, to);
    case SourceFormat::dockerfile:
      return convert_dockerfile(source, to);
    case SourceFormat::cog:
      return convert_cog(source, to);
    case SourceFormat::pyproject:
      if (says(source.text, "[tool.pixi") && !says(source.text, "[tool.poetry")) {
        convert_pixi(source, to);
      }
      return convert_pyproject(source, to);
    case SourceFormat::setup:
      return convert_setup(source, to);
    case SourceFormat::pipfile:
      return source.path.extension() == ".lock" ? convert_pipfile_lock(source, to)
                                                : convert_pipfile(source, to);
    case SourceFormat::project_lock:
      return convert_lock(source, to);
    case SourceFormat::pylock:
      return name_requirements(source, to);
    case SourceFormat::pixi:
      return source.path.extension() == ".lock" ? convert_pixi_lock(source, to)
                                                : convert_pixi(source, to);
    case SourceFormat::compose:
      return convert_compose(source, to);
    case SourceFormat::devcontainer:
      return convert_devcontainer(source, to);
    case SourceFormat::notebook:
      return convert_notebook(source, to);
    case SourceFormat::beside:
      return;
    case SourceFormat::space:
      if (is_space_readme(source.text)) return convert_space(source, to);
      throw not_readable(source.path, "tells of no Space that Python runs")
          .hint("name the file that lists what the project needs, or the project's folder");
  }
}

/// The file of a project's folder that is converted.
fs::path source_in(const fs::path& folder) {
  if (const auto found = richest_source(folder)) return *found;
  throw usage_error("source-invalid", "`{}` is a folder", folder.string())
      .because("none of the files in it describes an environment in a way that mlenv knows")
      .hint("name the file to convert");
}

/// A cloned repository's link may lead to any folder of this machine, as its files' may.
void refuse_linked_folder(const fs::path& path, const fs::path& folder) {
  std::string text = path.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  const fs::path link = text;
  std::error_code unknown;
  if (!fs::is_symlink(link, unknown) || !fs::is_directory(link, unknown)) return;
  if (!leads_out(link, link.parent_path()) || !leads_out(link, folder)) return;
  throw usage_error("source-invalid", "`{}` leads out of its folder", text)
      .because("a recipe goes where others read it, and would hold what lies elsewhere")
      .hint("name the folder that it leads to");
}

}  // namespace

Draft convert(const fs::path& path, const fs::path& folder) {
  std::error_code unknown;
  refuse_linked_folder(path, folder);
  if (fs::is_directory(path, unknown) && is_environment_folder(path)) {
    Conversion conversion{folder, path};
    conversion.draft.source = path.lexically_normal().string();
    convert_environment_folder(path, conversion.draft.source, conversion);
    conversion.finish();
    return std::move(conversion.draft);
  }
  const bool project = fs::is_directory(path, unknown);
  const fs::path file = project ? source_in(path).lexically_normal() : path;
  const std::string name = file.filename().string();
  const bool beside = project && (name == "apt.txt" || name == "postBuild");
  std::optional<SourceFormat> format = beside ? SourceFormat::beside : format_of(file);
  if (!format) {
    throw usage_error("unknown-format", "`{}` has the name of no format that mlenv converts",
                      path.string())
        .hint(
            "name a `Dockerfile`, `environment.yml`, `cog.yaml`, `pyproject.toml`, `setup.py`, "
            "`Pipfile`, `pixi.toml`, `devcontainer.json`, a lock, a notebook, a requirements file "
            "`*.txt`, a virtual environment, or a project's folder");
  }
  Conversion conversion{folder, file};
  ConversionSource source = read_source(file, conversion);
  const fs::path dockerfile = file.parent_path() / "Dockerfile";
  if (*format == SourceFormat::space && is_docker_space(source.text) &&
      fs::is_regular_file(dockerfile, unknown)) {
    source = read_source(dockerfile, conversion);
    format = SourceFormat::dockerfile;
  }
  if (*format == SourceFormat::conda && is_compose_text(source.text))
    format = SourceFormat::compose;
  conversion.draft.source = source.shown;
  convert_source(*format, source, conversion);
  if (project || *format == SourceFormat::space) convert_beside(file, conversion);
  conversion.finish();
  return std::move(conversion.draft);
}

}  // namespace mlenv
