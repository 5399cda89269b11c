#include <algorithm>

#include "base/printable.hpp"
#include "cli/check_text.hpp"
#include "cli/lines.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

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

std::string markdown_row(const Lines& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += ' ' + cell + " |";
  return line;
}

void add_table_head(Lines& out, const Lines& names) {
  out.push_back(markdown_row(names));
  out.push_back(markdown_row(Lines(names.size(), "---")));
}

std::string verdict_mark(const Verdict& verdict) {
  const std::string_view word = verdict.word();
  if (word == "blocks") return "❌ no";
  if (is_as_far_as_known(verdict)) return "❔ as far as known";
  if (word == "risks") return "⚠️ at risk";
  return word == "slows" ? "🐢 slower" : "✅ yes";
}

void add_finding_row(Lines& out, const Finding& finding, const std::string& place) {
  Lines cells = {fmt::format("{} `{}`", name_of(finding.severity), finding.rule),
                 cell_of(finding.needed), cell_of(finding.found), cell_of(finding.remedy)};
  if (!place.empty()) cells.push_back(cell_of(place));
  out.push_back(markdown_row(cells));
}

/// Folded; the facts' names are to be seen.
void add_unknown_line(Lines& out, const Checked& checked) {
  const std::vector<UnknownFact> facts = unknown_facts(checked);
  if (facts.empty()) return;
  constexpr std::size_t kMostNamed = 6;
  Lines names;
  for (const UnknownFact& one : facts) {
    const bool is_told = std::find(names.begin(), names.end(), one.first.fact) != names.end();
    if (!is_told) names.push_back(one.first.fact);
  }
  out.insert(
      out.end(),
      {"", fmt::format("<details><summary>not known: {}</summary>", listed(names, kMostNamed)),
       ""});
  const bool is_table = checked.cells.size() > 1;
  Lines head = {"not known", "why", "leaves open", "what to do"};
  if (is_table) head.emplace_back("where");
  add_table_head(out, head);
  for (const UnknownFact& one : facts) {
    Lines cells = {cell_of(one.first.fact), cell_of(one.first.why),
                   '`' + join(one.rules, "`, `") + '`', cell_of(one.first.how)};
    if (is_table) {
      cells.push_back(one.cells.empty() ? "all of them" : cell_of(holds_for(checked, one.cells)));
    }
    out.push_back(markdown_row(cells));
  }
  out.insert(out.end(), {"", "</details>"});
}

Lines one_markdown(const Checked& checked) {
  const Cell& cell = checked.cells.front();
  Lines out = {
      fmt::format("### `{}` {}", printable(cell.subject->shown), cell_of(headline_of(cell)))};
  if (!cell.verdict.findings.empty()) {
    out.emplace_back();
    add_table_head(out, {"rule", "needed", "found", "what to do"});
  }
  for (const Finding& one : cell.verdict.findings) add_finding_row(out, one, {});
  add_unknown_line(out, checked);
  return out;
}

Lines many_markdown(const Checked& checked) {
  Lines out;
  Lines names = {"host"};
  for (const Subject& one : checked.subjects) names.push_back('`' + printable(one.shown) + '`');
  add_table_head(out, names);
  for (std::size_t host = 0; host < checked.hosts.size(); ++host) {
    Lines row = {cell_of(checked.hosts[host].name)};
    for (std::size_t i = host; i < checked.cells.size(); i += checked.hosts.size()) {
      row.push_back(verdict_mark(checked.cells[i].verdict));
    }
    out.push_back(markdown_row(row));
  }
  const std::vector<FindingGroup> groups = grouped(checked);
  if (!groups.empty()) {
    out.emplace_back();
    add_table_head(out, {"rule", "needed", "found", "what to do", "where"});
  }
  for (const FindingGroup& group : groups) {
    Finding shown = group.finding;
    for (const FindingGroup::Found& one : group.found) {
      shown.found = one.what;
      add_finding_row(out, shown,
                      one.cells.empty() ? "all of them" : holds_for(checked, one.cells));
    }
  }
  add_unknown_line(out, checked);
  return out;
}

}  // namespace

std::vector<std::string> check_markdown(const Checked& checked) {
  return checked.cells.size() == 1 ? one_markdown(checked) : many_markdown(checked);
}

}  // namespace mlenv::cli
