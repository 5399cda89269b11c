#pragma once
// The control socket of a run that has no container of its own here: it can be ended, and nothing
// else. For the loop of its owner, who never waits for whoever asks.
#include <poll.h>
#include <optional>
#include <vector>

#include "base/handle.hpp"
#include "runner/local/control.hpp"

namespace mlenv {

class StopListener {
 public:
  /// `control`: a listening socket (listen_for_control), its owner's to close; -1: nobody asks.
  explicit StopListener(int control) : control_(control) {}

  /// What to wait for, appended.
  void add_to(std::vector<pollfd>& fds) const;
  /// The same, as poll(2) left them: answers each who has asked. A request to stop, where there was
  /// one.
  std::optional<StopRequest> hear(const pollfd* seen);

 private:
  int control_;
  std::vector<Fd> asking_;  ///< connections that have not said yet what they want
};

}  // namespace mlenv
