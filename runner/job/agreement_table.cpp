#include "runner/job/agreement_table.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/printable.hpp"
#include "base/record_json.hpp"
#include "recipes/text.hpp"

namespace mlenv::job {
namespace {

constexpr RecordKind kAgreementKind{
    "mlenv.agreement/1", "an agreement of nodes",
    "`mlenv --json run` of a job writes one where its nodes differ"};

bool is_difference(const AgreementRow& row) {
  return row.standing == name_of(Standing::blocked) || row.standing == name_of(Standing::noted);
}

}  // namespace

std::string who_has_what(const Agreement& agreement, const AgreementRow& row) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  const std::size_t count = std::min(row.values.size(), agreement.nodes.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string value = printable(row.values[i].value_or("not known"));
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const auto& group) { return group.first == value; });
    if (at == groups.end()) at = groups.insert(groups.end(), {value, {}});
    at->second.push_back(agreement.nodes[i]);
  }
  std::vector<std::string> parts;
  for (const auto& [value, nodes] : groups) {
    parts.push_back(fmt::format("{} on {}", value, listed(nodes, kNamed)));
  }
  return join(parts, "; ");
}

std::string_view name_of(Standing standing) {
  constexpr std::array<std::string_view, 4> kNames = {"same", "unknown", "noted", "blocked"};
  return kNames.at(static_cast<std::size_t>(standing));
}

const AgreementRow* Agreement::blocking() const {
  const auto found = std::find_if(rows.begin(), rows.end(), [](const AgreementRow& row) {
    return row.standing == name_of(Standing::blocked);
  });
  return found == rows.end() ? nullptr : &*found;
}

std::size_t Agreement::differences() const {
  return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), is_difference));
}

std::vector<std::string> difference_table(const Agreement& agreement) {
  if (agreement.differences() == 0) return {};
  std::vector<std::string> lines = {"the nodes differ:"};
  std::size_t width = 0;
  for (const AgreementRow& row : agreement.rows) {
    if (is_difference(row)) width = std::max(width, row.what.size());
  }
  for (const AgreementRow& row : agreement.rows) {
    if (!is_difference(row)) continue;
    const bool blocks = row.standing == name_of(Standing::blocked);
    lines.push_back(fmt::format("  {}  {:<{}}  {}  ({})", blocks ? "blocks" : "notes ", row.what,
                                width, who_has_what(agreement, row), row.effect));
  }
  return lines;
}

std::string render_agreement(const Agreement& agreement) {
  return render_record(agreement, kAgreementKind);
}

Agreement parse_agreement(std::string_view text, std::string_view shown) {
  return read_record<Agreement>(text, shown, kAgreementKind);
}

}  // namespace mlenv::job
