#include "cli/check_text.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "cli/lines.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::size_t kMostFacts = 3;

std::string_view finding_title(const Finding& finding) {
  if (!finding.title.empty()) return finding.title;
  const Rule* rule = find_rule(finding.rule);
  return rule == nullptr ? std::string_view(finding.rule) : rule->title;
}

std::string where(const CheckedHost& host) {
  return host.is_this() ? std::string("here") : "on " + host.name;
}

/// In a table.
std::string_view cell_word(const Verdict& verdict) {
  const std::string_view word = verdict.word();
  if (word == "blocks") return "no";
  if (is_as_far_as_known(verdict)) return "as far as known";
  if (word == "slows") return "slower";
  return word == "risks" ? "at risk" : "yes";
}

/// The words of `text` in lines of at most `width`.
Lines wrapped(const std::string& text, std::size_t width) {
  Lines lines(1);
  for (const std::string_view word : split(text, ' ')) {
    std::string& line = lines.back();
    if (!line.empty() && utf8_length(line) + 1 + utf8_length(word) > width) {
      lines.emplace_back(word);
    } else {
      line += (line.empty() ? "" : " ") + std::string(word);
    }
  }
  return lines;
}

void add_field(Lines& out, std::string_view name, const std::string& text) {
  constexpr std::size_t kWidth = 88;
  bool first = true;
  for (const std::string& line : wrapped(printable(text), kWidth)) {
    out.push_back(fmt::format("    {:<8}{}", first ? name : "", line));
    first = false;
  }
}

void add_finding_head(Lines& out, const Finding& finding) {
  out.emplace_back();
  out.push_back(fmt::format("  {:<8}{}: {}", name_of(finding.severity), finding.rule,
                            finding_title(finding)));
  add_field(out, "needed", finding.needed);
}

void add_finding(Lines& out, const Finding& finding) {
  add_finding_head(out, finding);
  add_field(out, "found", finding.found);
  add_field(out, "to do", finding.remedy);
}

void add_group(Lines& out, const Checked& checked, const FindingGroup& group) {
  add_finding_head(out, group.finding);
  for (const FindingGroup::Found& one : group.found) {
    add_field(out, "found", one.what);
    if (!one.cells.empty()) add_field(out, "where", holds_for(checked, one.cells));
  }
  add_field(out, "to do", group.finding.remedy);
}

void add_unknown(Lines& out, const Checked& checked) {
  const bool is_table = checked.cells.size() > 1;
  for (const UnknownFact& one : unknown_facts(checked)) {
    out.emplace_back();
    const std::string why = one.first.why.empty() ? "nothing says" : one.first.why;
    out.push_back(fmt::format("  unknown {}: {}", one.first.fact, printable(why)));
    add_field(out, "rules", join(one.rules, ", "));
    if (is_table && !one.cells.empty()) add_field(out, "where", holds_for(checked, one.cells));
    add_field(out, "to do", one.first.how);
  }
}

/// `host nvidia.kernel_driver, image cpu`
std::string open_facts(const Verdict& verdict) {
  Lines facts;
  for (const Unjudged& one : verdict.unjudged) {
    if (std::find(facts.begin(), facts.end(), one.fact) == facts.end()) facts.push_back(one.fact);
  }
  return listed(facts, kMostFacts);
}

void add_explain(Lines& out, const Finding& first) {
  out.insert(out.end(), {"", fmt::format("`mlenv explain {}` says more", first.rule)});
}

Lines one_text(const Checked& checked) {
  const Cell& cell = checked.cells.front();
  Lines out = {printable(headline_of(cell))};
  for (const Finding& finding : cell.verdict.findings) add_finding(out, finding);
  add_unknown(out, checked);
  if (!cell.verdict.findings.empty()) add_explain(out, cell.verdict.findings.front());
  return out;
}

/// Hosts below each other, subjects beside each other; the first row names the subjects.
std::vector<Lines> table_of(const Checked& checked) {
  std::vector<Lines> rows(checked.hosts.size() + 1);
  rows.front().emplace_back("host");
  for (std::size_t i = 0; i < checked.hosts.size(); ++i) {
    rows[i + 1].push_back(printable(checked.hosts[i].name));
  }
  for (const Subject& subject : checked.subjects) rows.front().push_back(printable(subject.shown));
  for (std::size_t i = 0; i < checked.cells.size(); ++i) {
    rows[i % checked.hosts.size() + 1].emplace_back(cell_word(checked.cells[i].verdict));
  }
  return rows;
}

void add_verdict_table(Lines& out, const std::vector<Lines>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Lines& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], utf8_length(row[i]));
    }
  }
  for (const Lines& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - utf8_length(row[i]) + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
}

Lines many_text(const Checked& checked) {
  Lines out;
  add_verdict_table(out, table_of(checked));
  const std::vector<FindingGroup> groups = grouped(checked);
  for (const FindingGroup& group : groups) add_group(out, checked, group);
  add_unknown(out, checked);
  if (!groups.empty()) add_explain(out, groups.front().finding);
  return out;
}

}  // namespace

bool is_as_far_as_known(const Verdict& verdict) {
  const std::string_view word = verdict.word();
  if (word == "unknown") return true;
  return (word == "runs" || word == "slows") && verdict.leaves_open(Severity::risks);
}

std::string headline_of(const Cell& cell) {
  const std::string at = where(*cell.host);
  const std::string_view word = cell.verdict.word();
  const auto& findings = cell.verdict.findings;
  if (word == "blocks")
    return fmt::format("does not run {}: {}", at, finding_title(findings.front()));
  if (is_as_far_as_known(cell.verdict)) {
    return fmt::format("runs {} as far as is known; not known: {}", at, open_facts(cell.verdict));
  }
  if (word == "risks") {
    return fmt::format("runs {}, and may fail: {}", at, finding_title(findings.front()));
  }
  return fmt::format("runs {}{}", at, word == "slows" ? ", slower than it could" : "");
}

std::vector<std::string> check_text(const Checked& checked) {
  return checked.cells.size() == 1 ? one_text(checked) : many_text(checked);
}

nlohmann::json check_json(const Checked& checked) {
  using nlohmann::json;
  const auto findings = [](const std::vector<Finding>& all) {
    json items = json::array();
    for (const Finding& one : all) {
      items.push_back({{"rule", one.rule},
                       {"severity", name_of(one.severity)},
                       {"what", finding_title(one)},
                       {"needed", one.needed},
                       {"found", one.found},
                       {"source", one.source},
                       {"remedy", one.remedy}});
    }
    return items;
  };
  const auto unjudged = [](const std::vector<Unjudged>& all) {
    json items = json::array();
    for (const Unjudged& one : all) {
      items.push_back({{"rule", one.rule}, {"fact", one.fact}, {"why", one.why}, {"how", one.how}});
    }
    return items;
  };
  json verdicts = json::array();
  for (const Cell& cell : checked.cells) {
    const ImageFacts& facts = cell.subject->on(cell.host->facts);
    verdicts.push_back({{"subject", cell.subject->name},
                        {"kind", facts.kind},
                        {"digest", facts.digest.empty() ? json(nullptr) : json(facts.digest)},
                        {"architecture", facts.architecture},
                        {"host", cell.host->name},
                        {"verdict", cell.verdict.word()},
                        {"findings", findings(cell.verdict.findings)},
                        {"unjudged", unjudged(cell.verdict.unjudged)}});
  }
  return {{"schema", "mlenv.verdict/1"},
          {"verdicts", std::move(verdicts)},
          {"together",
           {{"findings", findings(checked.together.findings)},
            {"unjudged", unjudged(checked.together.unjudged)}}}};
}

}  // namespace mlenv::cli
