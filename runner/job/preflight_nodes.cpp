#include "runner/job/preflight_nodes.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "runner/job/interfaces.hpp"
#include "runner/job/preflight_run.hpp"
#include "runner/mpi/frames.hpp"

namespace mlenv::job {
namespace {

/// InfiniBand's rate is the port's, that goes with the interface.
std::optional<double> interface_speed(const Facts& facts, const std::string& interface) {
  constexpr double kMega = 1e6;
  constexpr double kGiga = 1e9;
  if (facts.network.interfaces) {
    for (const NetworkInterface& one : *facts.network.interfaces) {
      // What has no device behind it (a veth's 10 Gbit/s, say) has a speed for form's sake.
      if (one.name != interface || !one.kind || *one.kind != "physical") continue;
      if (one.speed_mbps) return static_cast<double>(*one.speed_mbps) * kMega;
    }
  }
  if (facts.network.rdma) {
    for (const RdmaPort& one : *facts.network.rdma) {
      if (one.interface && *one.interface == interface && one.rate_gbps) {
        return *one.rate_gbps * kGiga;
      }
    }
  }
  return std::nullopt;
}

std::optional<double> rdma_speed_of(const Facts& facts) {
  constexpr double kGiga = 1e9;
  double all = 0;
  if (!facts.network.rdma) return std::nullopt;
  for (const RdmaPort& one : *facts.network.rdma) {
    if (one.state && *one.state == "ACTIVE" && one.rate_gbps) all += *one.rate_gbps * kGiga;
  }
  if (all <= 0) return std::nullopt;
  return all;
}

PreflightNode preflight_node(const NodeState& state, const Job& job, std::size_t count) {
  const Place place = place_of(
      job, count, {state.offer.name, state.offer.address, state.offer.interface}, *state.hello);
  PreflightNode node{place.name, place.address, place.interface, std::nullopt,
                     state.hello->boot_id};
  if (state.facts) {
    node.speed_bits_per_second = interface_speed(*state.facts, place.interface);
    node.rdma_bits_per_second = rdma_speed_of(*state.facts);
  }
  return node;
}

}  // namespace

Preflight preflight_of(DrivenNodes& nodes, const Job& job, const std::function<bool()>& step) {
  const std::vector<std::size_t> with = nodes.ready();
  std::vector<PreflightNode> described;
  for (const std::size_t node : with) {
    described.push_back(preflight_node(nodes.state(node), job, with.size()));
  }
  const auto say = [&](std::size_t node, const std::string& text) {
    if (NodeLink* const link = nodes.link(with[node])) link->link_test(text);
  };
  PreflightRun run{std::move(described), mpi::fresh_secret(),
                   [&](std::size_t node, const LinkRequest& request) {
                     say(node, render_link_request(request));
                   }};
  nodes.on_link_tested = [&](std::size_t node, const std::string& answer) {
    const auto found = std::find(with.begin(), with.end(), node);
    if (found != with.end()) run.heard(static_cast<std::size_t>(found - with.begin()), answer);
  };
  bool going_on = true;
  while (going_on && !run.over()) {
    going_on = step();
    for (std::size_t i = 0; i < with.size(); ++i) {
      if (nodes.link(with[i]) != nullptr) continue;
      run.lost(i, "it is lost: " + nodes.state(with[i]).lost.value_or(""));
    }
    run.tick();
  }
  nodes.on_link_tested = nullptr;
  for (std::size_t i = 0; i < with.size(); ++i) say(i, "");
  return run.result();
}

void require_links(const Preflight& preflight) {
  const PreflightFinding* first = nullptr;
  std::size_t others = 0;
  for (const PreflightFinding& one : preflight.findings) {
    if (one.standing != "broken") continue;
    if (first == nullptr) {
      first = &one;
    } else {
      ++others;
    }
  }
  if (first == nullptr) return;
  Error error = refusal("links-broken", "the nodes of the job do not reach each other")
                    .because(first->text)
                    .hint("`mlenv preflight` shows all links");
  if (others > 0) error.because(fmt::format("and {} more such", others));
  throw Error{std::move(error)};
}

}  // namespace mlenv::job
