#pragma once
// Whether an engine is still there while a command runs. Docker's daemon may end, or be killed, and
// its containers stay: the keeper goes on with the command, but nobody could end the container, or
// see it. A daemon that is started again in time finds it (`live-restore`), or ends it itself.
#include <sys/types.h>
#include <chrono>
#include <optional>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "runner/engine/engine.hpp"

namespace mlenv {

class EngineLife {
 public:
  /// `client`: the engine's process of a container, a child of ours. It ends with the daemon.
  EngineLife(const ContainerEngine& engine, pid_t client);
  /// Can be read when `lives` is to be asked; -1: never again.
  int fd() const { return watched_.get(); }
  /// False: the daemon has not answered for so long that it is taken for gone.
  bool lives();
  bool is_gone() const { return gone_; }

 private:
  using Clock = std::chrono::steady_clock;
  const ContainerEngine& engine_;
  Fd watched_;  ///< the client's end; from then on a clock
  std::optional<Clock::time_point> last_;
  bool gone_ = false;
};

/// `engine-down`, of a command that mlenv has ended for that.
Error engine_gone(const ContainerEngine& engine);

}  // namespace mlenv
