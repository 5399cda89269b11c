#include "runner/job/agreement.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/core.h>

#include "base/error.hpp"
#include "recipes/text.hpp"
#include "runner/changes/changes.hpp"
#include "runner/job/agreement_values.hpp"

namespace mlenv::job {
namespace {

using NodeValues = std::vector<std::optional<std::string>>;

/// How far apart known values may be before they differ, and what comes of it then.
struct Judgement {
  Standing standing = Standing::noted;
  std::string effect = {};  ///< empty: the rule's own
  std::string remedy = {};
};

class Table {
 public:
  Table(const Job& job, const std::vector<NodeReport>& nodes) : job_(job), nodes_(nodes) {
    for (const NodeReport& node : nodes) table_.nodes.push_back(node.name);
  }

  /// A row of `rule` of runner/changes.
  void compare(std::string_view rule, std::string_view what,
               const std::function<Text(const NodeReport&)>& read,
               const Judgement& judgement = {}) {
    NodeValues values;
    std::set<std::string> kinds;
    for (const NodeReport& node : nodes_) {
      values.push_back(read(node).value);
      if (values.back()) kinds.insert(*values.back());
    }
    add(rule, what, std::move(values), kinds.size() > 1, judgement);
  }

  void add(std::string_view rule, std::string_view what, NodeValues values, bool differ,
           const Judgement& judgement) {
    const changes::Rule& known = changes::rule_of(rule);
    AgreementRow row;
    row.rule = rule;
    row.what = what.empty() ? known.what : what;
    const bool all = std::all_of(values.begin(), values.end(),
                                 [](const auto& value) { return value.has_value(); });
    row.values = std::move(values);
    const Standing standing = differ ? judgement.standing
                              : all  ? Standing::same
                                     : Standing::unknown;
    row.standing = name_of(standing);
    if (differ) {
      row.effect = judgement.effect.empty() ? known.effect : judgement.effect;
      row.source = known.source;
      row.remedy = judgement.remedy.empty() ? known.remedy : judgement.remedy;
    }
    order_.push_back(standing);
    table_.rows.push_back(std::move(row));
  }

  void software();
  void machines();
  void clocks();
  void gpus();
  void names();
  void links();

  Agreement take() {
    std::vector<std::size_t> places(order_.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return order_[a] > order_[b]; });
    std::vector<AgreementRow> rows;
    rows.reserve(places.size());
    for (const std::size_t place : places) rows.push_back(std::move(table_.rows[place]));
    table_.rows = std::move(rows);
    return std::move(table_);
  }

 private:
  bool any(const std::function<bool(const NodeReport&)>& holds) const {
    return std::any_of(nodes_.begin(), nodes_.end(), holds);
  }

  const Job& job_;
  const std::vector<NodeReport>& nodes_;
  Agreement table_;
  std::vector<Standing> order_;
};

void Table::software() {
  compare("architecture", "", [](const NodeReport& one) { return one.facts.system.architecture; },
          {Standing::blocked, "", "take nodes of one architecture: an image is of one"});
  const bool lacking = any([](const NodeReport& one) { return one.hello.runtime.empty(); });
  Judgement runtime;
  if (lacking) {
    runtime = {Standing::blocked, "where there is none no container starts",
               "install runc or crun there"};
  }
  compare(
      "runtime", "", [](const NodeReport& one) { return runtime_of(one); }, runtime);
  compare("mlenv", "", [](const NodeReport& one) {
    return one.hello.version.empty() ? unknown<std::string>("not told")
                                     : known(one.hello.version, "the node");
  });
  compare("kernel", "", [](const NodeReport& one) { return one.facts.system.kernel; });
}

void Table::machines() {
  compare("cpu-instructions", "", [](const NodeReport& one) { return one.facts.cpu.level; });
  compare("cpu-model", "", [](const NodeReport& one) { return one.facts.cpu.model; },
          {Standing::noted, "the ranks wait for the slowest of them in each step", ""});
  compare("cpu-count", "", [](const NodeReport& one) { return text_of(one.facts.cpu.usable); });
  compare("memory-total", "",
          [](const NodeReport& one) { return bytes_of(one.facts.memory.total_bytes); });
  compare("shared-memory", "", [](const NodeReport& one) {
    return bytes_of(one.facts.storage.shared_memory.size_bytes);
  });
}

void Table::clocks() {
  NodeValues values;
  std::optional<double> least;
  std::optional<double> most;
  for (const NodeReport& node : nodes_) {
    const auto& skew = node.clock_offset;
    values.push_back(skew ? std::optional(fmt::format("{:+.1f} s", *skew)) : std::nullopt);
    if (!skew) continue;
    least = std::min(least.value_or(*skew), *skew);
    most = std::max(most.value_or(*skew), *skew);
  }
  const double apart = least ? *most - *least : 0;
  Judgement judgement{Standing::noted,
                      "logs of the ranks are merged in a wrong order, and what is the newest file "
                      "of a shared folder is not sure",
                      ""};
  if (apart > kSkewBlocked) {
    judgement = {
        Standing::blocked,
        "munge and Kerberos refuse each other's credentials beyond five minutes: Slurm and "
        "shared storage fail in the midst of the job",
        ""};
  }
  judgement.remedy = "run chrony or systemd-timesyncd on each node";
  add("clock", "clock, beside this machine's", std::move(values), apart > kSkewNoted, judgement);
}

void Table::gpus() {
  compare("driver-mismatch", "", [](const NodeReport& one) { return mismatch_of(one.facts); },
          {Standing::blocked, "", ""});
  const bool lacking =
      any([](const NodeReport& one) { return one.facts.nvidia.kernel_driver.value == "none"; });
  Judgement driver;
  if (lacking) {
    driver = {Standing::blocked, "where no driver is loaded no CUDA program starts",
              "`mlenv check` there says what is in its way"};
  }
  compare(
      "driver", "", [](const NodeReport& one) { return one.facts.nvidia.kernel_driver; }, driver);
  compare("gpu-model", "", [](const NodeReport& one) { return models_of(one.facts); },
          {Standing::noted,
           "the ranks wait for the slowest in each step, and sum what other kernels computed", ""});
  const bool too_few = any([&](const NodeReport& one) {
    return one.facts.gpus && one.facts.gpus->size() < job_.gpus_per_node.value_or(0);
  });
  Judgement count{Standing::blocked,
                  "ranks with another number of GPUs than the others' hang or fail in the first "
                  "collective call",
                  "give each node the same number: `--gpus-per-node`"};
  if (job_.gpus_per_node && !too_few) count = {Standing::noted, "each node gives as many", ""};
  compare(
      "gpu-count", "", [](const NodeReport& one) { return gpu_count_of(one.facts); }, count);
  compare("gpu-memory", "", [](const NodeReport& one) { return gpu_memory_of(one.facts); });
  compare("mig", "", [](const NodeReport& one) { return mig_of(one.facts); });
  compare("gpu-direct", "", [](const NodeReport& one) { return gpu_direct_of(one.facts); });
}

/// Not whether they differ: each that leads to itself is in the others' way.
void Table::names() {
  NodeValues values;
  bool loopback = false;
  for (const NodeReport& node : nodes_) {
    const NetworkFacts& network = node.facts.network;
    const bool listed = network.host_addresses && !network.host_addresses->empty();
    values.push_back(listed ? std::optional(network.host_addresses->front()) : std::nullopt);
    loopback = loopback || network.host_is_loopback.value.value_or(false);
  }
  add("host-loopback", "", std::move(values), loopback && nodes_.size() > 1, {});
}

void Table::links() {
  names();
  compare("network-speed", "", [](const NodeReport& one) { return speed_of(one); });
  if (!job_.options.rdma) return;
  const bool lacking = any(
      [](const NodeReport& one) { return one.facts.network.rdma && !has_active_port(one.facts); });
  Judgement ports;
  if (lacking) {
    ports = {Standing::blocked,
             "NCCL on the one goes over InfiniBand and on the other over sockets: they do not meet",
             "bring the port up, or leave `--rdma` out on all"};
  }
  compare(
      "rdma", "", [](const NodeReport& one) { return ports_of(one.facts); }, ports);
}

}  // namespace

Agreement agreement_of(const Job& job, const std::vector<NodeReport>& nodes, bool on_gpus) {
  Table table(job, nodes);
  table.software();
  table.clocks();
  if (on_gpus) table.gpus();
  table.links();
  table.machines();
  return table.take();
}

std::vector<NodeReport> reports_of(const std::vector<NodeState>& nodes) {
  std::vector<NodeReport> reports;
  for (const NodeState& node : nodes) {
    if (!node.hello || !node.facts) continue;
    reports.push_back({node.offer.name, *node.hello, *node.facts, node.clock_offset});
  }
  return reports;
}

void require_agreement(const Agreement& agreement) {
  std::vector<const AgreementRow*> blocking;
  std::vector<std::string> names;
  std::vector<std::string> remedies;
  for (const AgreementRow& row : agreement.rows) {
    if (row.standing != name_of(Standing::blocked)) continue;
    blocking.push_back(&row);
    names.push_back(row.what);
    const bool said = std::find(remedies.begin(), remedies.end(), row.remedy) != remedies.end();
    if (!said) remedies.push_back(row.remedy);
  }
  if (blocking.empty()) return;
  Error error = refusal("nodes-differ", "the nodes cannot work together: {}", join(names, ", "));
  for (const AgreementRow* row : blocking) {
    const std::string who = who_has_what(agreement, *row);
    error.because(blocking.size() == 1 ? who : row->what + ": " + who);
    error.because(row->effect);
  }
  throw std::move(error).hint(join(remedies, "; ") + "; `--no-check` starts it all the same");
}

}  // namespace mlenv::job
