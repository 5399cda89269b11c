// What nodes that are made ready wait for, as people are told of it.
#include "runner/job/drive_nodes.hpp"

namespace mlenv::job {

/// How much of the image there is, of a node that lacks it.
std::string DrivenNodes::image_awaited(const Node& node) {
  constexpr double kMega = 1e6;
  const SpreadCount& count = spread_.count(node.index);
  if (count.bytes == 0) return "for the image, which another node of its store may get first";
  if (count.there >= count.bytes) {
    return "to unpack the image, perhaps after another job that uses its store";
  }
  return fmt::format("for the image, {:.1f} of {:.1f} MB are there",
                     static_cast<double>(count.there) / kMega,
                     static_cast<double>(count.bytes) / kMega);
}

/// What a node that is not ready lacks first, and that in words; empty where it is told elsewhere.
DrivenNodes::Awaited DrivenNodes::awaited(const Node& node) {
  const NodeState& state = node.state;
  if (!state.hello) return {};  // it has its own patience: DrivePlan::meeting
  if (!state.facts && !plan_.image_alone) return {"facts", "to look at its devices"};
  if (!state.image) return {"image", image_awaited(node)};
  if (!state.code) return {"code", "for the code"};
  if (state.storage.size() < plan_.storage.size()) {
    const StorageUse& first = plan_.storage.front();
    return {"storage", fmt::format("to prove the storage `{}` at `{}`", first.name, first.path)};
  }
  if (state.data.size() >= plan_.data.size() || node.link->data_sent()) return {};
  const std::string& name = plan_.data[state.data.size()].name;
  return {"data " + name,
          fmt::format("to prove the data `{}`, perhaps after another job that brings it", name)};
}

void DrivenNodes::say_who_waits() {
  const auto now = std::chrono::steady_clock::now();
  for (Node& node : nodes_) {
    if (node.gone || is_ready(node) || !events_.notice) continue;
    const Awaited what = awaited(node);
    const std::optional<std::chrono::seconds> since = node.patience.ends(what.key, now);
    if (!since) continue;
    events_.notice(fmt::format("node {} has waited {} s {}", node.state.offer.name, since->count(),
                               what.text));
  }
}

}  // namespace mlenv::job
