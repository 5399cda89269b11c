#pragma once
// The recipe's JSON Schema, by which editors complete and check; recipe_reader.cpp decides.
#include <string_view>
#include <vector>

namespace mlenv {

/// recipes/recipe.schema.json, as it was when mlenv was built.
std::string_view recipe_schema();

/// Every key that the reader knows, and so does the schema.
std::vector<std::string_view> recipe_keys();
/// The same for the keys of `sources`, and of an archive of its `debian`.
std::vector<std::string_view> source_keys();
std::vector<std::string_view> archive_keys();

}  // namespace mlenv
