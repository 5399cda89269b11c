#pragma once
// The recipe's JSON Schema, by which editors complete and check; recipe_reader.cpp decides.
#include <string_view>
#include <vector>

namespace mlenv {

/// recipes/recipe.schema.json, as it was when mlenv was built.
std::string_view recipe_schema();

/// Every key that the reader knows, and so does the schema.
std::vector<std::string_view> recipe_keys();
/// The same for the keys of `sources`, of an archive of its `debian` and of its `python`.
std::vector<std::string_view> source_keys();
std::vector<std::string_view> archive_keys();
std::vector<std::string_view> python_source_keys();
/// Of `libraries`, an item of `requirements`, a step of `run` and a data set.
std::vector<std::string_view> library_keys();
std::vector<std::string_view> requirement_source_keys();
std::vector<std::string_view> step_keys();
std::vector<std::string_view> data_set_keys();
/// Of an item of `dependency-metadata`, and of `build`.
std::vector<std::string_view> metadata_keys();
std::vector<std::string_view> build_keys();

}  // namespace mlenv
