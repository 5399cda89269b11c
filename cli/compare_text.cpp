#include "cli/compare_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "cli/lines.hpp"
#include "recipes/text.hpp"
#include "runner/compare/figures.hpp"
#include "runner/compare/rows.hpp"

namespace mlenv::cli {
namespace {

using compare::CellWords;
using compare::Comparison;
using compare::RowResult;
using compare::SideResult;
std::string padded_to(const std::string& text, std::size_t width) {
  const std::size_t length = utf8_length(text);
  return length < width ? text + std::string(width - length, ' ') : text;
}

std::vector<const SideResult*> sides_there(const Comparison& comparison) {
  std::vector<const SideResult*> sides;
  for (const SideResult& side : comparison.sides) {
    if (!side.why) sides.push_back(&side);
  }
  return sides;
}

/// `41.2 ms ±`: an interval as half its width in percent of the median, which takes little room.
std::string cell_text(const CellWords& words, const compare::Cell& cell) {
  if (!words.measured) return "-";
  const auto& summary = cell.summary;
  if (!summary || summary->count < 2 || summary->median == 0) return words.value;
  constexpr double kPercent = 100;
  const double half = (summary->high - summary->low) / 2 / std::abs(summary->median) * kPercent;
  return fmt::format("{} ±{:.0f} %", words.value, half);
}

/// ` (×1.84)`; of another side than the first, ` (×1.84 of Docker)`.
std::string cell_times(const Comparison& comparison, const RowResult& row,
                       const compare::Cell& cell) {
  if (!cell.ratio) return "";
  const std::string base = printable(compare::other_base(comparison, row, cell));
  return fmt::format(" (×{}{})", compare::times_text(*cell.ratio),
                     base.empty() ? "" : " of " + base);
}

std::string side_title(const Comparison& comparison, const SideResult& side) {
  const std::string mark = common_mark(comparison, side.id);
  return printable(side.title) + (mark.empty() ? "" : ", " + mark);
}

std::string whole_cell(const Comparison& comparison, const RowResult& row, const SideResult& side) {
  const compare::Cell* const cell = find_cell(row, side.id);
  if (cell == nullptr) return "-";
  std::string text = printable(cell_text(words_of(comparison, row, *cell), *cell)) +
                     cell_times(comparison, row, *cell);
  const std::string mark = mark_of(comparison, *cell);
  if (!mark.empty() && common_mark(comparison, side.id).empty()) text += ", " + mark;
  return text;
}

/// Lines of cells, each column as wide as it needs.
Lines aligned(const std::vector<Lines>& table) {
  std::vector<std::size_t> widths(table.front().size(), 0);
  for (const Lines& cells : table) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], utf8_length(cells[i]));
    }
  }
  Lines lines;
  for (const Lines& cells : table) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += i + 1 < cells.size() ? padded_to(cells[i], widths[i]) + "  " : cells[i];
    }
    lines.push_back(line);
  }
  return lines;
}

/// A row a line, a side a column.
Lines wide_table(const Comparison& comparison, const std::vector<const SideResult*>& sides) {
  std::vector<Lines> table(1, {"ROW"});
  for (const SideResult* const side : sides) table.front().push_back(side_title(comparison, *side));
  for (const RowResult& row : comparison.rows) {
    Lines& cells = table.emplace_back(Lines{printable(row.title)});
    for (const SideResult* const side : sides) cells.push_back(whole_cell(comparison, row, *side));
  }
  return aligned(table);
}

/// A row a paragraph, a side a line: of those that have something.
Lines narrow_table(const Comparison& comparison, const std::vector<const SideResult*>& sides) {
  std::vector<Lines> table;
  for (const RowResult& row : comparison.rows) {
    table.push_back({printable(row.title)});
    for (const SideResult* const side : sides) {
      const std::string cell = whole_cell(comparison, row, *side);
      if (cell != "-") table.push_back({"  " + side_title(comparison, *side), cell});
    }
  }
  std::size_t widest = 0;
  for (const Lines& cells : table) {
    if (cells.size() > 1) widest = std::max(widest, utf8_length(cells.front()));
  }
  Lines lines;
  for (const Lines& cells : table) {
    lines.push_back(cells.size() > 1 ? padded_to(cells[0], widest) + "  " + cells[1] : cells[0]);
  }
  return lines;
}

void add_comparison_table(Lines& lines, const Comparison& comparison, std::size_t width) {
  const std::vector<const SideResult*> sides = sides_there(comparison);
  Lines table = wide_table(comparison, sides);
  const bool fits = std::all_of(table.begin(), table.end(), [&](const std::string& line) {
    return utf8_length(line) <= width;
  });
  if (width > 0 && !fits) table = narrow_table(comparison, sides);
  lines.insert(lines.end(), table.begin(), table.end());
}

/// Reasons, each once, with what it holds for.
void add_gaps(Lines& lines, const Comparison& comparison) {
  std::vector<std::pair<std::string, Lines>> gaps;
  for (const RowResult& row : comparison.rows) {
    for (const SideResult* const side : sides_there(comparison)) {
      const compare::Cell* const cell = find_cell(row, side->id);
      if (cell == nullptr || cell->summary || cell->text) continue;
      const std::string why = printable(cell->why.value_or("no reason is known"));
      auto at =
          std::find_if(gaps.begin(), gaps.end(), [&](const auto& gap) { return gap.first == why; });
      if (at == gaps.end()) at = gaps.insert(gaps.end(), {why, {}});
      at->second.push_back(printable(row.id + " (" + side->id + ")"));
    }
  }
  constexpr std::size_t kMost = 6;
  for (const auto& [why, rows] : gaps) {
    lines.push_back(fmt::format("not measured: {}: {}", why, listed(rows, kMost)));
  }
}

}  // namespace

std::vector<std::string> compare_text(const Comparison& comparison, std::size_t width) {
  Lines lines;
  lines.push_back(fmt::format("{}, {} on {}, {} processors", printable(comparison.terms.image_name),
                              printable(comparison.host.cpu), printable(comparison.host.name),
                              comparison.terms.processors));
  lines.emplace_back();
  add_comparison_table(lines, comparison, width);
  lines.emplace_back();
  for (const SideResult& side : comparison.sides) {
    const std::string title = printable(side.title);
    if (side.why) {
      lines.push_back(fmt::format("{} not measured: {}", title, printable(*side.why)));
      continue;
    }
    const std::string about = about_side(comparison, side.id);
    if (!about.empty()) lines.push_back(fmt::format("{}: {}", title, printable(about)));
  }
  add_gaps(lines, comparison);
  for (const std::string& remark : remarks_of(comparison)) lines.push_back(printable(remark));
  lines.emplace_back(
      "±: half of the interval that holds the median with 95 % confidence (less below six starts); "
      "without it: one start. "
      "×: times the first side's, or that of the side named, where the intervals do not touch; "
      "elsewhere no difference is claimed.");
  return lines;
}

}  // namespace mlenv::cli
