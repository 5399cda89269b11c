#pragma once
// Runs variations side by side: so many at once, each in a supervisor of its own, until all are
// over or a signal says stop.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runner/local/supervised.hpp"

namespace mlenv::matrix {

struct DrivePlan {
  std::vector<std::size_t> todo;  ///< variations, in this order
  std::size_t at_once = 1;
  bool fail_fast = false;  ///< one that fails ends those that run
  fs::path runs_folder;
  bool own_hosts = false;  ///< of each slot: it may be that only those of one cannot be reached
};

/// How one ended.
struct Ended {
  std::size_t variation = 0;
  std::size_t slot = 0;
  std::string run;       ///< id; empty: it has none
  bool stopped = false;  ///< it was told to end before
  std::optional<RunOutcome> outcome;
  std::optional<Error> failure;  ///< mlenv could not run it
  bool ends_all = false;         ///< such a failure is told at the end: it would be one of all
};

/// What the caller does; nothing of it may take long.
struct DriveEvents {
  /// Whatever it throws is how this variation ended. Variations that run at once have different
  /// slots, from 0.
  std::function<std::unique_ptr<Supervised>(std::size_t variation, std::size_t slot)> start;
  std::function<void(std::size_t variation)> began;
  /// Its record is there.
  std::function<void(std::size_t variation, const std::string& run)> recorded;
  std::function<void(const Ended&)> ended;
  /// With `own_hosts`: it could not begin there (`no-node`), begins again elsewhere, and no other
  /// is tried there.
  std::function<void(const Ended&)> left_out;
  /// A signal: no more are started; those that run get it. The second time they are killed.
  std::function<void(int signal, bool again)> stopping;
  std::function<void()> tick;  ///< every second, and after each event
};

struct DriveEnd {
  int signal = 0;                ///< that ended it; 0: none
  std::optional<Error> refused;  ///< mlenv's own reason that ended it, after some had been started
};

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT (unless they were ignored before) stop it: they are passed
/// on to the commands that run, no more are started, and it returns when all are over; another one
/// kills them. SIGUSR1 and SIGUSR2 are passed on alone. Should one not be run for a reason of
/// mlenv's before any command was started, no more are: it would be the same for all, but for hosts
/// that cannot be reached while there are others. Those that are started all the same are asked to
/// end; with none of them it is thrown.
DriveEnd drive(const DrivePlan& plan, const DriveEvents& events);

}  // namespace mlenv::matrix
