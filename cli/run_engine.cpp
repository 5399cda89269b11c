#include "cli/run_engine.hpp"

#include "runner/engine/engine_image.hpp"
#include "runner/local/shell.hpp"

namespace mlenv::cli {

std::string runtime_of(const std::string& word) { return word == "builtin" ? "" : word; }

ContainerEngine engine_for(Ui& ui, const std::string& name, const Image& image) {
  ContainerEngine engine = find_engine(name);
  bring_image(ui.store(), image, engine, ui.progress());
  return engine;
}

std::vector<std::string> shell_words() { return {"/bin/sh", "-c", shell_choice()}; }

}  // namespace mlenv::cli
