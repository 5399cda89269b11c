#include "recipes/init/convert.hpp"

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/conda_packages.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/mistakes.hpp"
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
      return "a Python project";
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
  if (ending == ".yaml" || ending == ".yml") return SourceFormat::conda;
  if (ending == ".txt" || ending == ".in") return SourceFormat::requirements;
  return std::nullopt;
}

Draft convert(const fs::path& path, const fs::path& folder) {
  const std::optional<SourceFormat> format = format_of(path);
  if (!format) {
    throw usage_error("unknown-format", "`{}` has the name of no format that mlenv converts",
                      path.string())
        .hint(
            "name a `Dockerfile`, `environment.yml`, `cog.yaml`, `pyproject.toml` or a "
            "requirements file `*.txt`");
  }
  Conversion conversion{folder, path};
  const ConversionSource source = read_source(path, conversion);
  conversion.draft.source = source.shown;
  switch (*format) {
    case SourceFormat::requirements:
      if (is_conda_list(source.text)) {
        convert_conda_list(source.shown, source.text, conversion);
      } else {
        conversion.requirements(path, source.shown, source.text);
      }
      break;
    case SourceFormat::conda:
      convert_conda(source, conversion);
      break;
    case SourceFormat::dockerfile:
      convert_dockerfile(source, conversion);
      break;
    case SourceFormat::cog:
      convert_cog(source, conversion);
      break;
    case SourceFormat::pyproject:
      convert_pyproject(source, conversion);
      break;
  }
  conversion.finish();
  return std::move(conversion.draft);
}

}  // namespace mlenv
