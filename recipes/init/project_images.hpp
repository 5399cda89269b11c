#pragma once
// Images that a project builds itself, and begins other Dockerfiles with.
#include <optional>
#include <string_view>
#include <vector>

#include "recipes/init/converters.hpp"

namespace mlenv {

struct ProjectImage {
  fs::path dockerfile;
  DockerBuild build{};
};

/// What builds `image`: a service of Compose that names it, a `docker build -t` of a script,
/// Makefile or README, or, for an image without a registry, a Dockerfile whose own name is the end
/// of the image's: `Dockerfile.base` of `lab-base`. Looked for in `folders`, in the recipe's, and
/// one folder below each; nothing is followed out of the project. nullopt: nothing does.
std::optional<ProjectImage> project_image(std::string_view image, const fs::path& dockerfile,
                                          std::vector<fs::path> folders, Conversion& to);

/// Whether two names are of one image: `lab` is `docker.io/library/lab:latest`.
bool is_same_image(std::string_view a, std::string_view b);

}  // namespace mlenv
