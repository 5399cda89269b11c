#pragma once
// The cells of a notebook that hold code (nbformat's documentation, "The Notebook file format").
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace mlenv {

struct CodeCell {
  int number;  ///< of all cells, from 1
  std::string text;
};

/// In their order; none where `notebook` has no list of cells.
std::vector<CodeCell> code_cells(const nlohmann::json& notebook);

}  // namespace mlenv
