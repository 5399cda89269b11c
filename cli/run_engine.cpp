#include "cli/run_engine.hpp"

#include "runner/engine/engine_image.hpp"

namespace mlenv::cli {

std::string runtime_of(const std::string& word) { return word == "builtin" ? "" : word; }

ContainerEngine engine_for(Ui& ui, const std::string& name, const Image& image) {
  ContainerEngine engine = find_engine(name);
  bring_image(ui.store(), image, engine, ui.progress());
  return engine;
}

std::vector<std::string> shell_words() {
  return {"/bin/sh", "-c",
          "for shell in /bin/bash /usr/bin/bash /bin/zsh /usr/bin/zsh /bin/ash; do\n"
          "  [ ! -x $shell ] || exec $shell\n"
          "done\n"
          "exec /bin/sh"};
}

}  // namespace mlenv::cli
