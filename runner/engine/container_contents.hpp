#pragma once
// A container of docker or podman, read for `mlenv init --from docker:NAME`.
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "recipes/init/container_contents.hpp"

namespace mlenv {

/// `docker:lab`, `podman:lab`; nullopt for any other text.
struct NamedContainer {
  std::string engine;
  std::string name;  ///< of a container, or of an image; an id of either
  static std::optional<NamedContainer> parse(std::string_view text);
};

/// Reads a container, running or not, or an image of that name; the engine exports its files, and
/// nothing of it is run. An image is exported from a container that is made for it and removed.
/// What a recipe needs of the files is written below `folder`. Variables given at the container's
/// start, and those with a secret's name, are told by their names alone. Throws what `find_engine`
/// does, `source-invalid` (usage) where the engine has neither, `engine-image` where it does not
/// export it, `bad-tar`, `too-large`.
ContainerContents read_container(const NamedContainer& named, const fs::path& folder);

}  // namespace mlenv
