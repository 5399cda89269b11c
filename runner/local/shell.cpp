#include "runner/local/shell.hpp"

#include <array>

namespace mlenv {
namespace {

constexpr std::array kShells = {"/bin/bash", "/usr/bin/bash", "/bin/zsh", "/usr/bin/zsh",
                                "/bin/ash"};

}  // namespace

std::string best_shell(const std::function<bool(const std::string&)>& is_there) {
  for (const char* const path : kShells) {
    if (is_there(path)) return path;
  }
  return "/bin/sh";
}

std::string shell_choice() {
  std::string text = "for shell in";
  for (const char* const path : kShells) text.append(" ").append(path);
  return text +
         "; do\n"
         "  [ ! -x $shell ] || exec $shell\n"
         "done\n"
         "exec /bin/sh";
}

}  // namespace mlenv
