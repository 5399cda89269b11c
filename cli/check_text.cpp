#include "cli/check_text.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kMostNamed = 6;

std::string_view title_of(const Finding& finding) {
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
  if (word == "slows") return "slower";
  if (word == "unknown") return "not known";
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

void add_finding(Lines& out, const Finding& finding) {
  out.emplace_back();
  out.push_back(
      fmt::format("  {:<8}{}: {}", name_of(finding.severity), finding.rule, title_of(finding)));
  add_field(out, "needed", finding.needed);
  add_field(out, "found", finding.found);
  add_field(out, "to do", finding.remedy);
}

/// Reasons, each with the rules that it leaves open.
void add_unjudged(Lines& out, const std::vector<Unjudged>& unjudged) {
  Lines reasons;
  std::map<std::string, Lines> rules;
  for (const Unjudged& one : unjudged) {
    Lines& named = rules[one.why];
    if (named.empty()) reasons.push_back(one.why);
    if (std::find(named.begin(), named.end(), one.rule) == named.end()) named.push_back(one.rule);
  }
  if (!reasons.empty()) out.insert(out.end(), {"", "  not judged"});
  for (const std::string& why : reasons) {
    out.push_back(fmt::format("    {}: {}", join(rules[why], ", "),
                              why.empty() ? "not known" : printable(why)));
  }
}

void add_explain(Lines& out, const Finding& first) {
  out.insert(out.end(), {"", fmt::format("`mlenv explain {}` says more", first.rule)});
}

Lines one_text(const Checked& checked) {
  const Cell& cell = checked.cells.front();
  Lines out = {printable(headline_of(cell))};
  for (const Finding& finding : cell.verdict.findings) add_finding(out, finding);
  add_unjudged(out, cell.verdict.unjudged);
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

void add_table(Lines& out, const std::vector<Lines>& rows) {
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
  add_table(out, table_of(checked));
  const std::vector<FindingGroup> groups = grouped(checked);
  for (const FindingGroup& group : groups) {
    add_finding(out, group.finding);
    if (!group.cells.empty()) add_field(out, "where", holds_for(checked, group));
  }
  std::vector<Unjudged> unjudged = checked.together.unjudged;
  for (const Cell& cell : checked.cells) {
    unjudged.insert(unjudged.end(), cell.verdict.unjudged.begin(), cell.verdict.unjudged.end());
  }
  add_unjudged(out, unjudged);
  if (!groups.empty()) add_explain(out, groups.front().finding);
  return out;
}

}  // namespace

std::string headline_of(const Cell& cell) {
  const std::string at = where(*cell.host);
  const std::string_view word = cell.verdict.word();
  const auto& findings = cell.verdict.findings;
  if (word == "blocks") return fmt::format("does not run {}: {}", at, title_of(findings.front()));
  if (word == "unknown") return fmt::format("runs {} as far as is known, which is not all", at);
  if (word == "risks") {
    return fmt::format("runs {}, and may fail: {}", at, title_of(findings.front()));
  }
  return fmt::format("runs {}{}", at, word == "slows" ? ", slower than it could" : "");
}

std::vector<FindingGroup> grouped(const Checked& checked) {
  std::vector<FindingGroup> groups;
  for (const Finding& one : checked.together.findings) groups.push_back({one, {}});
  for (const Cell& cell : checked.cells) {
    for (const Finding& one : cell.verdict.findings) {
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const FindingGroup& group) {
        return group.finding.rule == one.rule && group.finding.severity == one.severity &&
               group.finding.needed == one.needed;
      });
      if (same == groups.end()) {
        groups.push_back({one, {&cell}});
      } else {
        same->cells.push_back(&cell);
      }
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::pair(a.finding.severity, find_rule(a.finding.rule)) <
           std::pair(b.finding.severity, find_rule(b.finding.rule));
  });
  return groups;
}

std::string holds_for(const Checked& checked, const FindingGroup& group) {
  std::vector<std::string> texts;
  for (const Subject& subject : checked.subjects) {
    Lines hosts;
    for (const Cell* cell : group.cells) {
      if (cell->subject == &subject) hosts.push_back(cell->host->name);
    }
    if (hosts.empty()) continue;
    std::string text = listed(hosts, kMostNamed);
    if (checked.subjects.size() > 1) text = fmt::format("{} on {}", subject.shown, text);
    texts.push_back(std::move(text));
  }
  return join(texts, "; ");
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
                       {"what", title_of(one)},
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
      items.push_back({{"rule", one.rule}, {"fact", one.fact}, {"why", one.why}});
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
