#pragma once
// Names of source releases: `NAME-VERSION.tar.gz` (PEP 625), and the archives that were usual
// before, which indexes still have.
#include <string>
#include <string_view>

namespace mlenv {

/// Whether the name ends as a source archive does.
bool is_source_file(std::string_view file);
/// The name without that ending; empty where it has none.
std::string_view without_source_ending(std::string_view file);
/// "`.tar.gz`, `.tgz`, … and `.zip`", for messages.
std::string listed_source_endings();

}  // namespace mlenv
