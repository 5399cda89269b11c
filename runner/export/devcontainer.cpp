#include "runner/export/devcontainer.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "recipes/init/build_commands.hpp"

namespace mlenv {
namespace {

using nlohmann::ordered_json;

constexpr const char* kOwnUser = "dev";

bool is_user_name(std::string_view name) {
  return !name.empty() && (is_letter(name.front()) || name.front() == '_') &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
}

/// Without the group; empty where the image runs as root, or as a number without a name. The script
/// has it in a shell's commands, and in a pattern: nothing but a name may come there.
std::string user_of(const ImageConfig& image) {
  std::string user = image.user.substr(0, image.user.find(':'));
  if (user == "root" || std::all_of(user.begin(), user.end(), is_digit)) return {};
  if (is_user_name(user)) return user;
  throw failure("bad-image", "the image's user `{}` is no name of a user", printable(user))
      .hint("give the image another one: a letter or `_`, then letters, digits, `_`, `.`, `-`");
}

/// It stands among a mount's options, which commas part and quotes join, and where
/// devcontainer.json's own `${...}` is understood.
std::string workspace_folder(const ImageConfig& image) {
  const std::string& folder = image.workdir;
  if (folder.empty() || folder == "/") return "/workspace";
  const bool fits = std::none_of(folder.begin(), folder.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' ||
           std::string_view(",\"'`$\\").find(c) != std::string_view::npos;
  });
  if (fits) return folder;
  throw failure("bad-image", "a project cannot be mounted at the image's folder `{}`",
                printable(folder))
      .because("a comma, a quote, `$`, a backslash or a line's end is in it")
      .hint("give the image another `workdir`");
}

std::string engine_image(const DevContainer& container) {
  return container.name + "-devcontainer:latest";
}

ordered_json customizations(const DevContainer& container) {
  ordered_json settings = ordered_json::object();
  ordered_json extensions = ordered_json::array();
  if (container.python) {
    settings["python.defaultInterpreterPath"] = *container.python;
    // The image's PATH leads to it as it is.
    settings["python.terminal.activateEnvironment"] = false;
    extensions.push_back("ms-python.python");
  }
  if (container.has_kernel) extensions.push_back("ms-toolsai.jupyter");
  return {{"vscode", {{"settings", settings}, {"extensions", extensions}}}};
}

/// Shell that sets `digest`.
std::string digest_line(const DevContainer& container) {
  if (!container.recipe) return "digest=" + container.digest;
  // Locked where it is not yet, as `mlenv build` has it.
  return fmt::format("digest=$(mlenv -q build {} | tail -n 1)", shell_quoted(*container.recipe));
}

/// A user of the image gets the caller's number.
constexpr const char* kOwnUserStep =
    R"sh(RUN sed -i 's/^{0}:\\([^:]*\\):[0-9]*:[0-9]*:/{0}:\\1:$user:$group:/' /etc/passwd && \
  home=\$(sed -n 's/^{0}:[^:]*:[^:]*:[^:]*:[^:]*:\\([^:]*\\):.*/\\1/p' /etc/passwd) && \
  if [ "\$home" != / ] && [ -d "\$home" ]; then chown -R $user:$group "\$home"; fi
)sh";

/// An image that runs as root gets one more user.
constexpr const char* kNewUserStep = R"sh(RUN sed -i '/^{0}:/d' /etc/passwd /etc/group && \
  echo '{0}:x:$user:$group::/home/{0}:{1}' >>/etc/passwd && \
  echo '{0}:x:$group:' >>/etc/group && \
  mkdir -p /home/{0} && chown $user:$group /home/{0}
)sh";

constexpr const char* kStartScript = R"sh(#!/bin/sh
# Gives the container engine the image that devcontainer.json names. Written by `mlenv export
# devcontainer`; called before each start. What is there already is not made again.
# MLENV_ENGINE names another engine than docker.
set -eu
cd "$(dirname "$0")/.."
engine=${{MLENV_ENGINE:-docker}}
{digest}
image=mlenv:${{digest#sha256:}}
if ! $engine image inspect "$image" >/dev/null 2>&1; then
  loaded=$(mlenv -q save "$digest" docker-archive:- | $engine load -q)
  $engine tag "${{loaded##*: }}" "$image"
fi

# Files made in the project are to be the caller's: one small layer gives the user in the container
# the caller's number. An engine that runs without root shows the caller as root.
user=$(id -u) group=$(id -g)
case $($engine info --format '{{{{.SecurityOptions}}}}' 2>/dev/null ||
  $engine info --format 'rootless={{{{.Host.Security.Rootless}}}}') in
*name=rootless* | *rootless=true*) user=0 group=0 ;;
esac
$engine build -q --network none -t {image} - >/dev/null <<DOCKERFILE
FROM $image
USER 0
{step}USER {user}
DOCKERFILE
)sh";

}  // namespace

std::string devcontainer_user(const DevContainer& container) {
  const std::string user = user_of(container.image);
  return user.empty() ? kOwnUser : user;
}

std::string devcontainer_json(const DevContainer& container) {
  const std::string folder = workspace_folder(container.image);
  ordered_json settings = {
      {"name", container.name},
      {"initializeCommand", "sh .devcontainer/image.sh"},
      {"image", engine_image(container)},
      {"remoteUser", devcontainer_user(container)},
      // The script has done it: the CLI's own way needs a newer builder than some engines have.
      {"updateRemoteUserUID", false},
      {"workspaceMount",
       fmt::format("source=${{localWorkspaceFolder}},target={},type=bind", folder)},
      {"workspaceFolder", folder},
      // All is in the image's environment; a login shell's profile would put another PATH first.
      {"userEnvProbe", "none"},
      // Data loaders pass batches through /dev/shm; an engine's 64 MB are not enough.
      {"runArgs", {"--shm-size=8g"}},
  };
  if (container.uses_gpus) settings["hostRequirements"] = {{"gpu", "optional"}};
  settings["customizations"] = customizations(container);
  return settings.dump(2) + "\n";
}

std::string devcontainer_script(const DevContainer& container) {
  const std::string user = devcontainer_user(container);
  const std::string step = user_of(container.image).empty()
                               ? fmt::format(kNewUserStep, user, container.shell)
                               : fmt::format(kOwnUserStep, user);
  return fmt::format(kStartScript, fmt::arg("digest", digest_line(container)),
                     fmt::arg("image", engine_image(container)), fmt::arg("step", step),
                     fmt::arg("user", user));
}

}  // namespace mlenv
