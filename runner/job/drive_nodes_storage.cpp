// Storage that has a name, while nodes are made ready: what the proof asks and finds.
#include <algorithm>

#include "runner/job/drive_nodes.hpp"

namespace mlenv::job {

StorageProof::Talk DrivenNodes::storage_talk() {
  StorageProof::Talk talk;
  talk.ask = [this](std::size_t node, const std::string& request) {
    if (NodeLink* const to = link(node)) to->test_storage(request);
  };
  talk.proven = [this](std::size_t node, const std::vector<StorageProven>& proven) {
    nodes_[node].state.storage = proven;
  };
  talk.failed = [this](std::size_t node, const Error& error) {
    storage_failed(nodes_[node], error);
  };
  return talk;
}

/// Where the job goes on without the node nobody would hear of it else.
void DrivenNodes::storage_failed(Node& node, const Error& error) {
  if (!node.error) node.error = error;
  if (is_elastic(plan_.job) && events_.notice) {
    events_.notice(
        fmt::format("node {} cannot take part: {}", node.state.offer.name, error.what()));
  }
  lost(node, error.what());
}

bool DrivenNodes::any_unmet() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const Node& node) { return !node.gone && !node.state.hello; });
}

}  // namespace mlenv::job
