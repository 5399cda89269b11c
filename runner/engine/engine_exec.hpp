#pragma once
// Further commands in the container of an EngineRun: as exec_server.hpp, by way of its keeper.
#include <vector>

#include "runner/engine/keeper_client.hpp"
#include "runner/local/bundle.hpp"
#include "runner/local/control.hpp"
#include "runner/local/program.hpp"
#include "runner/local/serving.hpp"

namespace mlenv {

class EngineExec {
 public:
  /// `root`: the container's. `process`: what further commands have of the run's.
  EngineExec(const Keeper& keeper, const Fd& root, const Bundle& bundle, const KeptProcess& process)
      : keeper_(keeper), root_(root), bundle_(bundle), process_(process) {}

  /// `files`: standard input, output and error of the process, or none with a terminal.
  void start(const ExecRequest& request, std::vector<Fd> files, Fd connection);

 private:
  const Keeper& keeper_;
  const Fd& root_;
  const Bundle& bundle_;
  const KeptProcess& process_;
  ServingProcesses serving_;
};

}  // namespace mlenv
