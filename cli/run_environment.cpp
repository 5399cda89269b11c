#include "cli/run_environment.hpp"

#include "images/image_files.hpp"

namespace mlenv::cli {

Environment installed_in(Ui& ui, const Image& image, std::string_view name) {
  return while_doing(fmt::format("reading what `{}` has installed", name), [&] {
    return environment_in(image_files(ui.store(), image, tells_of_packages, ui.progress()),
                          image.settings.os + '/' + image.settings.architecture);
  });
}

std::string add_environment(Ui& ui, RunRecord& run) {
  if (run.environment) return {};
  const std::string& digest = run.start.image.digest;
  try {
    if (!ui.store().find_image(digest)) {
      return fmt::format("the store does not have its image, and the record not its packages");
    }
    const Image image = image_named(ui, digest);
    run.environment = run_environment(installed_in(ui, image, digest), image.settings.env);
    return {};
  } catch (const Error& error) {
    return error.what();  // a damaged image leaves the rest of the record readable
  }
}

}  // namespace mlenv::cli
