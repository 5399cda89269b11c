#pragma once
// A container that is ready for its command: made by the built-in runtime (stage.cpp) or by an
// engine (runner/engine).
#include <functional>
#include <optional>

#include "runner/local/job_watch.hpp"
#include "runner/local/program.hpp"
#include "runner/local/supervise.hpp"

namespace mlenv {

class PreparedRun {
 public:
  struct Attempt {
    JobEnd end;
    bool started = false;
    bool last = false;  ///< there cannot be another one: the container is gone
  };
  PreparedRun() = default;
  PreparedRun(const PreparedRun&) = delete;
  PreparedRun& operator=(const PreparedRun&) = delete;
  virtual ~PreparedRun() = default;
  /// Why a shell would not start the command; then `run` is not called.
  virtual const std::optional<CannotRun>& refusal() const = 0;
  /// The command to its end. The writable layer is as the attempt before left it; all else is made
  /// anew. `started` is called when it runs.
  virtual Attempt run(JobWatch& watch, const std::function<void()>& started) = 0;
  /// What all of it used, where this process's children are not it.
  virtual std::optional<JobUsage> usage() const { return std::nullopt; }
  /// The machine that it ran in, where that was a virtual one.
  virtual std::optional<VmUse> vm() const { return std::nullopt; }
};

}  // namespace mlenv
