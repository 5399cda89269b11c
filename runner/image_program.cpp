#include "runner/image_program.hpp"

#include "base/text.hpp"
#include "runner/local/job.hpp"

namespace mlenv {

bool KnownNames::has_entries(const std::string& folder) const {
  const std::string first = fs::path(folder).relative_path().lexically_normal().string() + "/";
  const auto at = files_.nodes().lower_bound(first);
  return at != files_.nodes().end() && at->first.starts_with(first);
}

std::optional<std::string> program_in_image(const ImageConfig& image, const ImageNames& files,
                                            std::string_view name) {
  constexpr std::string_view kName = "PATH=";
  std::string_view path = kDefaultPath;
  for (const std::string& variable : image.env) {
    if (variable.starts_with(kName)) path = std::string_view(variable).substr(kName.size());
  }
  for (const std::string_view folder : split(path, ':')) {
    std::string program = std::string(folder) + "/" + std::string(name);
    if (!folder.empty() && files.is_program(program)) return program;
  }
  return std::nullopt;
}

}  // namespace mlenv
