#pragma once
// `mlenv run --nodes --dry-run`: what nodes will be asked about the data that a recipe declares.
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/ui.hpp"
#include "runner/job/data_set.hpp"

namespace mlenv::cli {

/// A line for each, as part of the answer; the same as notes, where the answer is something else.
void say_data(const Ui& ui, const std::vector<job::DataSet>& data);
void note_data(const Ui& ui, const std::vector<job::DataSet>& data);
nlohmann::json data_json(const std::vector<job::DataSet>& data);

}  // namespace mlenv::cli
