#include "runner/job/node_verdict.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "recipes/text.hpp"
#include "runner/check/verdict.hpp"
#include "runner/job/agreement.hpp"
#include "runner/node/node_gpus.hpp"

namespace mlenv::job {
namespace {

struct Blocked {
  Finding finding;
  std::vector<std::string> nodes;
};

std::string_view finding_title(const Finding& finding) {
  if (!finding.title.empty()) return finding.title;
  const Rule* const rule = find_rule(finding.rule);
  return rule == nullptr ? std::string_view(finding.rule) : rule->title;
}

void add_blocked(std::optional<Blocked>& blocked, const Verdict& verdict, const std::string& node) {
  if (!verdict.blocks()) return;
  const Finding& worst = verdict.findings.front();
  if (!blocked) blocked = Blocked{worst, {}};
  blocked->nodes.push_back(node);
}

bool uses_gpus(const std::string& gpus, const std::vector<NodeState>& nodes) {
  if (gpus != kGpusIfAny) return asked_gpus(gpus).kind != GpuChoice::Kind::none;
  return std::any_of(nodes.begin(), nodes.end(), [](const NodeState& node) {
    return node.facts && node.facts->gpus && !node.facts->gpus->empty();
  });
}

}  // namespace

void NodeChecks::operator()(const std::vector<NodeState>& nodes) {
  if (!plan_.image_facts) return;
  const bool on_gpus = uses_gpus(plan_.gpus, nodes);
  require_verdicts(*plan_.image_facts, plan_.start.image.name, nodes, on_gpus);
  const Agreement agreement = agreement_of(plan_.job, reports_of(nodes), on_gpus);
  tell(agreement);
  require_agreement(agreement);
}

void NodeChecks::tell(const Agreement& agreement) {
  const std::vector<std::string> table = difference_table(agreement);
  if (table.empty() || !said_.insert(table).second) return;
  if (differ_) differ_(agreement);
  if (!notice_) return;
  for (const std::string& line : table) notice_(line);
}

void require_verdicts(const ImageFacts& image, const std::string& name,
                      const std::vector<NodeState>& nodes, bool with_gpus) {
  Use use;
  if (!with_gpus) use.gpus = 0;
  use.nodes = static_cast<unsigned>(nodes.size());
  std::optional<Blocked> blocked;
  std::vector<mlenv::Rank> together;
  for (const NodeState& node : nodes) {
    if (!node.facts) continue;
    add_blocked(blocked, judge(image, *node.facts, use), node.offer.name);
    together.push_back({&image, &*node.facts, node.offer.name});
  }
  add_blocked(blocked, judge_together(together, use), "all of them together");
  if (!blocked) return;
  constexpr std::size_t kNamed = 4;
  const Finding& finding = blocked->finding;
  throw refusal("does-not-run", "`{}` does not run on {}: {}", name, listed(blocked->nodes, kNamed),
                finding_title(finding))
      .because("needed: " + printable(finding.needed))
      .because("found: " + printable(finding.found))
      .hint(fmt::format("{}; `mlenv explain {}` says more, `--no-check` starts it all the same",
                        printable(finding.remedy), finding.rule));
}

}  // namespace mlenv::job
