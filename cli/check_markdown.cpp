#include <algorithm>

#include "base/printable.hpp"
#include "cli/check_text.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

using Lines = std::vector<std::string>;

/// Of a table: on one line, without what would end the cell or begin markup. Backticks stay: they
/// are ours.
std::string cell_of(const std::string& text) {
  std::string out;
  bool code = false;
  for (const char c : printable(text)) {
    if (c == '`') code = !code;
    const bool is_markup = c == '|' || (!code && (c == '*' || c == '_' || c == '<' || c == '['));
    if (is_markup) out += '\\';
    out += c;
  }
  return out;
}

std::string row_of(const Lines& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += ' ' + cell + " |";
  return line;
}

void add_head(Lines& out, const Lines& names) {
  out.push_back(row_of(names));
  out.push_back(row_of(Lines(names.size(), "---")));
}

std::string mark_of(const Verdict& verdict) {
  const std::string_view word = verdict.word();
  if (word == "blocks") return "❌ no";
  if (word == "unknown") return "❔ not known";
  if (word == "risks") return "⚠️ at risk";
  return word == "slows" ? "🐢 slower" : "✅ yes";
}

void add_finding(Lines& out, const Finding& finding, const std::string& place) {
  Lines cells = {fmt::format("{} `{}`", name_of(finding.severity), finding.rule),
                 cell_of(finding.needed), cell_of(finding.found), cell_of(finding.remedy)};
  if (!place.empty()) cells.push_back(cell_of(place));
  out.push_back(row_of(cells));
}

void add_unjudged(Lines& out, const std::vector<Unjudged>& unjudged) {
  if (unjudged.empty()) return;
  out.insert(out.end(), {"", "<details><summary>not judged</summary>", ""});
  Lines lines;
  for (const Unjudged& one : unjudged) {
    lines.push_back(fmt::format("- `{}`: {}", one.rule, cell_of(one.why)));
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  out.insert(out.end(), lines.begin(), lines.end());
  out.insert(out.end(), {"", "</details>"});
}

Lines one_markdown(const Checked& checked) {
  const Cell& cell = checked.cells.front();
  Lines out = {
      fmt::format("### `{}` {}", printable(cell.subject->shown), cell_of(headline_of(cell)))};
  if (!cell.verdict.findings.empty()) {
    out.emplace_back();
    add_head(out, {"rule", "needed", "found", "what to do"});
  }
  for (const Finding& one : cell.verdict.findings) add_finding(out, one, {});
  add_unjudged(out, cell.verdict.unjudged);
  return out;
}

Lines many_markdown(const Checked& checked) {
  Lines out;
  Lines names = {"host"};
  for (const Subject& one : checked.subjects) names.push_back('`' + printable(one.shown) + '`');
  add_head(out, names);
  for (std::size_t host = 0; host < checked.hosts.size(); ++host) {
    Lines row = {cell_of(checked.hosts[host].name)};
    for (std::size_t i = host; i < checked.cells.size(); i += checked.hosts.size()) {
      row.push_back(mark_of(checked.cells[i].verdict));
    }
    out.push_back(row_of(row));
  }
  const std::vector<FindingGroup> groups = grouped(checked);
  if (!groups.empty()) {
    out.emplace_back();
    add_head(out, {"rule", "needed", "found", "what to do", "where"});
  }
  for (const FindingGroup& one : groups) {
    add_finding(out, one.finding, one.cells.empty() ? "all of them" : holds_for(checked, one));
  }
  std::vector<Unjudged> unjudged = checked.together.unjudged;
  for (const Cell& cell : checked.cells) {
    unjudged.insert(unjudged.end(), cell.verdict.unjudged.begin(), cell.verdict.unjudged.end());
  }
  add_unjudged(out, unjudged);
  return out;
}

}  // namespace

std::vector<std::string> check_markdown(const Checked& checked) {
  return checked.cells.size() == 1 ? one_markdown(checked) : many_markdown(checked);
}

}  // namespace mlenv::cli
