#include "recipes/notebook_cells.hpp"

#include <nlohmann/json.hpp>

namespace mlenv {
namespace {

/// A text, or a list of its lines.
std::string text_of_cell(const nlohmann::json& cell) {
  const auto found = cell.find("source");
  if (found == cell.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  std::string text;
  if (!found->is_array()) return text;
  for (const nlohmann::json& line : *found) {
    if (line.is_string()) text += line.get<std::string>();
  }
  return text;
}

}  // namespace

std::vector<CodeCell> code_cells(const nlohmann::json& notebook) {
  std::vector<CodeCell> all;
  const auto cells = notebook.find("cells");
  if (cells == notebook.end() || !cells->is_array()) return all;
  int number = 0;
  for (const nlohmann::json& cell : *cells) {
    ++number;
    const auto kind = cell.find("cell_type");
    if (kind == cell.end() || *kind != "code") continue;
    all.push_back({number, text_of_cell(cell)});
  }
  return all;
}

}  // namespace mlenv
