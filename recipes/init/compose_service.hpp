#pragma once
// One service of a Docker Compose file (the Compose specification): its image, or what builds it.
#include <optional>
#include <string>
#include <string_view>

#include "recipes/init/converters.hpp"
#include "recipes/init/project_images.hpp"

namespace mlenv {

/// What the recipe cannot say of the service is told; so is a file or service that is not there.
/// Of files behind the `first`, which add to a service, none is missed where it does not name it.
void convert_compose_service(const SourcePlace& place, const fs::path& file,
                             const std::string& service, bool first, Conversion& to);

/// The Dockerfile of the service that builds an image of that name, and how; nullopt: none does.
/// What cannot be read of it is passed over.
std::optional<ProjectImage> compose_build_of(const ConversionSource& source, std::string_view image,
                                             Conversion& to);

/// Whether YAML is of Compose.
bool is_compose_text(const std::string& text);
/// A file of Compose by itself: the first of its services that is built, else the first. The others
/// are told.
void convert_compose(const ConversionSource& source, Conversion& to);

}  // namespace mlenv
