#pragma once
// Paths as text, with `/` between their parts: of images, layers and projects, where fs::path would
// ask this machine or say `.`.
#include <string>
#include <string_view>

namespace mlenv {

/// What is behind the last `/`; all of it without one.
std::string_view last_part(std::string_view path);
/// What is before the last `/`; empty without one.
std::string_view folder_of(std::string_view path);
/// `folder/name`; `name` alone where `folder` is empty.
std::string below(std::string_view folder, std::string_view name);
/// Whether `path` is `folder` or lies in it. Both are absolute, or both relative, and neither ends
/// in `/` unless it is the root.
bool is_beneath(std::string_view path, std::string_view folder);

}  // namespace mlenv
