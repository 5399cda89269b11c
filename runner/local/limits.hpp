#pragma once
// A job's limits, applied: a limit that cannot be had is an error, never left out.
#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/local/limit_place.hpp"

namespace mlenv {

/// Words before ours with which this process would come to where limits can be set; empty: it is
/// there already, or needs none. Throws `no-limit` where there is no way.
std::vector<std::string> scope_for(const JobLimits& limits);

/// Throws `no-limit` unless this process may set them for a job: above its own hard limits only
/// root may go.
void check_ulimits(const std::vector<Ulimit>& ulimits);

/// Throws `no-limit` where `--cpus` is more than this machine has.
void check_cpus(const JobLimits& limits);

/// A control group with limits. It holds what is started between `enter` and `leave`; its end, or
/// that of this object, removes it, and everything in it must be gone by then.
class LimitGroup {
 public:
  /// Throws `no-limit`.
  explicit LimitGroup(const JobLimits& limits);
  LimitGroup(const LimitGroup&) = delete;
  LimitGroup& operator=(const LimitGroup&) = delete;
  ~LimitGroup();
  /// This process goes into it, so that what it starts begins there; and back.
  void enter() const;
  void leave() const noexcept;
  /// Removes it where this object's process was killed: from a process outside it. Whether it is
  /// gone.
  bool remove() const noexcept;
  /// One for each controller that it has on its own.
  std::vector<fs::path> folders() const;
  /// Whether the kernel has killed a process in it, or in a group below it, for want of memory.
  bool killed_for_memory() const;
  /// Adds what to do where the kernel has refused somebody in it a process (`pids.events`), which
  /// is why the runtime itself may not have come up.
  void explain(Error& error) const;

 private:
  explicit LimitGroup(std::string name);
  void make_groups(const LimitPlace& place);
  void step_aside(const LimitPlace& place);
  void set(const std::string& controller, const char* file, const std::string& value) const;
  void set_all(const JobLimits& limits);
  void watch_memory();
  void set_memory(const JobLimits& limits) const;
  void set_cpuset(const std::string& processors) const;
  void set_cpus(double cpus) const;
  bool has(const std::string& controller, const char* file) const;

  struct Group {
    std::string controller;
    bool unified = false;
    fs::path folder;
    fs::path back;  ///< where this process returns to
  };
  const Group& group(const std::string& controller) const;
  std::string name_;
  std::vector<Group> groups_;
  Fd shortages_;  ///< version 1: an eventfd that counts them, in groups below, too
  fs::path aside_;
  fs::path before_aside_;
};

/// A process begun within it, where there is one; we stay outside.
Child start_within(const LimitGroup* limits, const Command& command);

/// Removes a group that nothing is in any more. Whether it is gone.
bool remove_group(const fs::path& folder) noexcept;

/// Of a group with the memory controller, of either version; 0 where it does not say.
std::uint64_t memory_kills(const fs::path& group);

}  // namespace mlenv
