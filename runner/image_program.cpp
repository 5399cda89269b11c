#include "runner/image_program.hpp"

#include "base/text.hpp"
#include "runner/local/job.hpp"

namespace mlenv {

std::optional<std::string> program_in_image(const ImageConfig& image, const StackedTrees& files,
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
