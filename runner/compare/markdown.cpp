#include "runner/compare/markdown.hpp"

#include <fmt/core.h>

#include "base/printable.hpp"
#include "runner/compare/figures.hpp"
#include "runner/compare/published.hpp"
#include "runner/compare/rows.hpp"

namespace mlenv::compare {
namespace {

/// What markdown would take for its own.
std::string markdown_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    constexpr std::string_view kSpecial = R"(\`*_{}[]<>|#)";
    if (kSpecial.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string cell_text(const Comparison& in, const RowResult& row, const std::string& side) {
  const Cell* const cell = find_cell(row, side);
  if (cell == nullptr) return "";
  const CellWords words = words_of(in, row, *cell);
  std::string text = markdown_text(words.value);
  if (!words.interval.empty()) text += " (" + markdown_text(words.interval) + ")";
  if (!words.note.empty()) text += ": " + markdown_text(words.note);
  return text;
}

void add_header(std::vector<std::string>& lines, const Comparison& in, const std::string& first) {
  std::string titles = "| " + first + " |";
  std::string rule = "| --- |";
  for (const SideResult& side : in.sides) {
    const std::string mark = common_mark(in, side.id);
    titles += " " + markdown_text(side.title) + (mark.empty() ? "" : ", *" + mark + "*") + " |";
    rule += " --- |";
  }
  lines.push_back(titles);
  lines.push_back(rule);
}

}  // namespace

std::vector<std::string> markdown(const Comparison& comparison) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("# {} on {}", markdown_text(comparison.terms.image_name),
                              markdown_text(comparison.host.name)));
  lines.emplace_back();
  lines.push_back(fmt::format("{}, {} processors, kernel {}; image `{}`.",
                              markdown_text(comparison.host.cpu), comparison.terms.processors,
                              markdown_text(comparison.host.kernel),
                              markdown_text(comparison.terms.image)));
  lines.emplace_back();
  add_header(lines, comparison, "");
  for (const RowResult& row : comparison.rows) {
    std::string line = "| " + markdown_text(row.title) + " |";
    for (const SideResult& side : comparison.sides) {
      line += " " + cell_text(comparison, row, side.id) + " |";
    }
    lines.push_back(line);
  }
  lines.emplace_back();
  for (const std::string& remark : remarks_of(comparison)) {
    lines.push_back("- " + markdown_text(remark));
  }
  lines.emplace_back(
      "- Medians, in brackets the interval that holds the median with 95 % confidence (order "
      "statistics); \"times\" stands only where two intervals do not touch.");
  lines.emplace_back();
  lines.emplace_back("Published by others, not measured here:");
  lines.emplace_back();
  for (const Published& one : published()) {
    lines.push_back(fmt::format("- {}: {} ([{}]({}))", markdown_text(one.what),
                                markdown_text(one.figure), markdown_text(one.source), one.address));
  }
  return lines;
}

}  // namespace mlenv::compare
