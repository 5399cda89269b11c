#pragma once
// Where a control group with a job's limits can be made (cgroups(7); the kernel's cgroup-v2.rst).
//
// Version 1: in this process's group of each controller, as root. Version 2: processes and limited
// groups do not lie in one folder, so it is the nearest folder from ours upwards that hands the
// controllers down and that we may write; none of those below it may have a limit of its own, which
// the job would leave behind. A folder that holds no process but us hands them down once we step
// aside. Where there is none, systemd may make one: a scope with delegation.
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "runner/facts/sources.hpp"
#include "runner/local/options.hpp"

namespace mlenv {

struct ControllerPlace {
  std::string controller;
  bool unified = false;  ///< of version 2: these all have the same `parent`
  fs::path parent;       ///< the group is made in it
  fs::path own;          ///< where this process is now
  friend bool operator==(const ControllerPlace&, const ControllerPlace&) = default;
};

struct LimitPlace {
  std::vector<ControllerPlace> controllers;
  bool step_aside = false;  ///< `parent` is `own`, and holds nobody but this process
};

struct NoLimitPlace {
  std::vector<std::string>
      scope;  ///< a command line before ours that gives us a place; empty: none
  std::string why;
  std::string hint;
};

struct LimitRights {
  std::function<bool(const fs::path&)> may_write;  ///< path of `FactSources`
  bool root = false;
  int pid = 0;
  std::string runtime_folder;  ///< XDG_RUNTIME_DIR; may be empty
};
/// Of this process.
LimitRights own_rights();

/// Names of the controllers that the limits need.
std::vector<std::string> controllers_for(const JobLimits& limits);

std::variant<LimitPlace, NoLimitPlace> find_limit_place(const FactSources& from,
                                                        const LimitRights& rights,
                                                        const JobLimits& limits);

}  // namespace mlenv
