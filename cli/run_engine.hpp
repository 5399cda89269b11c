#pragma once
// `--runtime docker|podman` of a run.
#include <string>

#include "cli/ui.hpp"
#include "images/oci.hpp"
#include "runner/local/run.hpp"

namespace mlenv::cli {

/// The word as a run takes it: `builtin` is what it has without one.
std::string runtime_of(const std::string& word);

/// Asks the engine, and gives it the image. Throws as find_engine and bring_image.
ContainerEngine engine_for(Ui& ui, const std::string& name, const Image& image);

/// The best shell of an image that is not looked into from here.
std::vector<std::string> shell_words();

}  // namespace mlenv::cli
