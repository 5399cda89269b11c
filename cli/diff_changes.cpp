#include "cli/diff_changes.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "cli/diff_text.hpp"
#include "cli/lines.hpp"
#include "cli/run_record.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

using changes::Change;
using changes::Changes;
using changes::NotCompared;
using changes::Weight;
/// What a group of findings is called; those that explain the ends come first.
std::string_view group_title(const Change& change) {
  if (change.explains) return "known to bring that";
  switch (change.weight) {
    case Weight::breaks:
      return "may break it";
    case Weight::results:
      return "may change results";
    case Weight::speed:
      return "may change speed";
    case Weight::note:
      return "worth knowing";
    case Weight::incidental:
      break;
  }
  return "cannot matter";
}

std::string head_of(const NamedMoment& one) {
  if (!one.moment.run) {
    if (one.kind() == "host") return "this host";
    const Text& name = one.moment.host->network.host_name;
    return "host " + (name ? *name : std::string("of unknown name")) + "  (" + one.name + ')';
  }
  const RunLine line = run_line(*one.moment.run);
  std::string text = fmt::format("run {}  {}", line.id, line.state);
  if (!line.took.empty()) text += ", " + line.took;
  text += fmt::format("  {}  {}", line.started, line.command);
  if (one.name.ends_with(".json")) text += "  (" + one.name + ')';
  return text;
}

/// On one line where both are short, else one below the other.
void print_both_values(Lines& out, const Change& change, std::string_view indent) {
  constexpr std::size_t kLine = 90;
  const std::string from = printable(change.from.value_or("none"));
  const std::string to = printable(change.to.value_or("none"));
  const std::string what = printable(change.what);
  const std::string head = fmt::format("{}≠ {}", indent, what);
  if (utf8_length(head) + utf8_length(from) + utf8_length(to) < kLine) {
    out.push_back(fmt::format("{}  {} → {}", head, from, to));
    return;
  }
  out.push_back(head);
  out.push_back(fmt::format("{}      {}", indent, from));
  out.push_back(fmt::format("{}    → {}", indent, to));
}

void print_change(Lines& out, const Change& change) {
  print_both_values(out, change, "  ");
  if (change.weight == Weight::incidental) return;
  out.push_back(fmt::format("      {} ({})", change.effect, change.source));
  if (change.weight != Weight::note) out.push_back("      try: " + change.remedy);
}

void print_found(Lines& out, const Changes& found, bool all) {
  std::string_view last;
  std::size_t folded = 0;
  for (const Change& one : found.found) {
    if (one.weight == Weight::incidental && !all) {
      ++folded;
      continue;
    }
    if (const std::string_view title = group_title(one); title != last) {
      out.emplace_back();
      out.emplace_back(title);
      last = title;
    }
    print_change(out, one);
  }
  if (folded == 0) return;
  out.emplace_back();
  out.push_back(
      fmt::format("{} that cannot matter: `--all` shows them", counted(folded, "more difference")));
}

/// `first: why; second: why`, or why of both.
std::string why_of(const NotCompared& open) {
  if (open.from && open.to) {
    if (*open.from == *open.to) return *open.from;
    return fmt::format("first: {}; second: {}", *open.from, *open.to);
  }
  return open.from ? "first: " + *open.from : "second: " + *open.to;
}

void print_open(Lines& out, const Changes& found) {
  if (found.open.empty()) return;
  out.emplace_back();
  out.emplace_back("not known, so neither the same nor different");
  for (const NotCompared& one : found.open) {
    out.push_back(printable(fmt::format("  ? {}  {}", one.what, why_of(one))));
  }
}

void print_likely(Lines& out, const Changes& found) {
  const Change* likely = found.likely();
  if (likely == nullptr) return;
  out.emplace_back();
  // Without ends that differ nobody asks what brought that.
  const char* head = likely->explains ? "most likely" : "most likely to matter";
  out.push_back(printable(fmt::format("{}: {}: {} → {}", head, likely->what,
                                      likely->from.value_or("none"), likely->to.value_or("none"))));
}

nlohmann::json value_or_null(const std::optional<std::string>& text) {
  return text ? nlohmann::json(*text) : nlohmann::json(nullptr);
}

std::string_view symptom_name(changes::Symptom symptom) {
  using S = changes::Symptom;
  constexpr std::array<std::pair<S, std::string_view>, 5> kNames = {
      {{S::fails, "fails"},
       {S::out_of_memory, "out-of-memory"},
       {S::bus_error, "bus-error"},
       {S::illegal_instruction, "illegal-instruction"},
       {S::slower, "slower"}}};
  const auto* found = std::find_if(kNames.begin(), kNames.end(),
                                   [&](const auto& one) { return one.first == symptom; });
  return found == kNames.end() ? "none" : found->second;
}

nlohmann::json moment_json(const NamedMoment& one) {
  nlohmann::json side = {
      {"name", one.name}, {"kind", one.kind()}, {"digest", nullptr}, {"platform", nullptr}};
  if (!one.moment.run) return side;
  side["digest"] = one.moment.run->start.image.digest;
  if (one.moment.run->environment) side["platform"] = one.moment.run->environment->platform;
  return side;
}

}  // namespace

std::vector<std::string> changes_text(const NamedMoment& from, const NamedMoment& to,
                                      const Changes& found, bool all) {
  Lines out = {printable("first   " + head_of(from)), printable("second  " + head_of(to))};
  if (!found.symptom_text.empty()) out.push_back("so: " + found.symptom_text);
  print_likely(out, found);
  if (!found.differ()) {
    out.emplace_back();
    out.emplace_back(found.open.empty() ? "no difference that can matter"
                                        : "no difference that can matter in what is known");
  }
  print_found(out, found, all);
  if (all && found.installed) print_packages(out, *found.installed);
  print_open(out, found);
  return out;
}

void add_findings(nlohmann::json& answer, const Changes& found) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Change& one : found.found) {
    findings.push_back({{"rule", one.rule},
                        {"weight", changes::name_of(one.weight)},
                        {"what", one.what},
                        {"from", value_or_null(one.from)},
                        {"to", value_or_null(one.to)},
                        {"effect", one.effect},
                        {"source", one.source},
                        {"remedy", one.remedy},
                        {"explains", one.explains}});
  }
  nlohmann::json open = nlohmann::json::array();
  for (const NotCompared& one : found.open) {
    open.push_back(
        {{"what", one.what}, {"from", value_or_null(one.from)}, {"to", value_or_null(one.to)}});
  }
  const Change* likely = found.likely();
  answer["findings"] = std::move(findings);
  answer["likely"] = likely == nullptr ? nlohmann::json(nullptr) : nlohmann::json(likely->rule);
  answer["symptom"] =
      found.symptom == changes::Symptom::none
          ? nlohmann::json(nullptr)
          : nlohmann::json{{"kind", symptom_name(found.symptom)}, {"text", found.symptom_text}};
  answer["not_compared"] = std::move(open);
}

nlohmann::json changes_json(const NamedMoment& from, const NamedMoment& to, const Changes& found) {
  nlohmann::json answer = {{"schema", "mlenv.diff/1"}, {"from", moment_json(from)},
                           {"to", moment_json(to)},    {"settings", nlohmann::json::array()},
                           {"layers", nullptr},        {"fetch", nullptr}};
  const EnvironmentDiff none;
  add_installed(answer, found.installed ? *found.installed : none);
  add_findings(answer, found);
  // Unknown is not the same: null.
  answer["same"] = found.differ()       ? nlohmann::json(false)
                   : found.open.empty() ? nlohmann::json(true)
                                        : nlohmann::json(nullptr);
  return answer;
}

}  // namespace mlenv::cli
