#pragma once
// `mlenv copy`: an image on nodes, and nothing run there. The nodes are brought up, and the image
// comes to them, as for a job (image_spread.hpp).
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "images/store.hpp"
#include "runner/job/image_spread.hpp"
#include "runner/launch/node_starter.hpp"

namespace mlenv::job {

struct CopyPlan {
  std::string digest;              ///< of the image's manifest
  std::vector<std::string> names;  ///< that it is to have there
  std::string interface;           ///< by which nodes reach each other; empty: as for a job
  PullFrom from;                   ///< nodes fetch it there
  LinkSettings link;
};

/// What came of one node.
struct CopiedNode {
  std::string node;
  SpreadCount count;
  double seconds = 0;          ///< from the start until it had proven the image
  std::optional<Error> error;  ///< nothing: it has the image, verified and unpacked
};

struct CopyOutcome {
  std::vector<CopiedNode> nodes;  ///< in the starter's order
  int signal = 0;                 ///< that ended it; 0: none
};

struct CopyEvents {
  std::function<void(const std::string& node, std::uint64_t there, std::uint64_t all)> came{};
  std::function<void(const CopiedNode&)> ended{};
  std::function<void(const std::string&)> notice{};  ///< a sentence for the person
};

/// To the end, for each node by itself: what one cannot do keeps no other from it. SIGINT and its
/// kin end it; what came is kept on the nodes. Throws where there is no node at all (`no-node`).
CopyOutcome copy_image(Store& store, NodeStarter& starter, const CopyPlan& plan,
                       const CopyEvents& events);

}  // namespace mlenv::job
