#pragma once
// Tables of names that mlenv carries, packed: CMakeLists.txt makes a source of each text.
#include <string>
#include <string_view>

namespace mlenv {

/// recipes/init/conda_names.txt
std::string conda_names_table();
/// recipes/resolve/popular_names.txt
std::string popular_names_table();

/// The one member of a gzip file (RFC 1952).
std::string unpacked_table(std::string_view packed);

}  // namespace mlenv
