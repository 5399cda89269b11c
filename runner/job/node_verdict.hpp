#pragma once
// Whether an image runs on the nodes of a job, before anything is started there.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "runner/job/drive.hpp"

namespace mlenv::job {

/// Before the first attempt and each further one: whether the image runs on the nodes
/// (require_verdicts) and whether they are alike enough (agreement.hpp). Where anything differs
/// `notice` hears of all of it as a table, line by line, and `differ` as data, also where it is an
/// error; the same only once. Nothing where the plan has no facts of the image.
class NodeChecks {
 public:
  NodeChecks(const DrivePlan& plan, std::function<void(const std::string&)> notice,
             std::function<void(const Agreement&)> differ = {})
      : plan_(plan), notice_(std::move(notice)), differ_(std::move(differ)) {}
  /// Throws `does-not-run`, `nodes-differ` (no).
  void operator()(const std::vector<NodeState>& nodes);

 private:
  void tell(const Agreement& agreement);
  const DrivePlan& plan_;
  std::function<void(const std::string&)> notice_;
  std::function<void(const Agreement&)> differ_;
  std::set<std::vector<std::string>> said_;
};

/// Judges each node by its facts (check/verdict.hpp), and all of them together. Throws
/// `does-not-run` (no), which names the first finding that blocks, the node, and how many others
/// it blocks on. `with_gpus`: the ranks use the nodes' GPUs.
void require_verdicts(const ImageFacts& image, const std::string& name,
                      const std::vector<NodeState>& nodes, bool with_gpus);

}  // namespace mlenv::job
