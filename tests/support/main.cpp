// main of the unit tests: as the program's own, it first lets a re-executed half do its work, which
// ends without exit handlers: the leak checker cannot trace in a namespace.
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/sandbox/sandbox.hpp"
#include "runner/compare/minder.hpp"
#include "runner/launch/local_nodes.hpp"
#include "runner/local/detached.hpp"
#include "runner/local/run.hpp"
#include "runner/node/agent.hpp"
#include "runner/record/run_recorder.hpp"

int main(int argc, char** argv) {
  if (const std::optional<int> status = mlenv::sandbox_main(argc, argv)) std::_Exit(*status);
  if (const std::optional<int> status = mlenv::run_main(argc, argv)) std::_Exit(*status);
  if (const std::optional<int> status = mlenv::job::local_node_main(argc, argv)) {
    std::_Exit(*status);
  }
  if (const std::optional<int> status = mlenv::detached_main(argc, argv)) std::_Exit(*status);
  if (const std::optional<int> status =
          mlenv::record_main(argc, argv, [] { return mlenv::temporary_root() / "mlenv-tests"; }))
    std::_Exit(*status);
  if (const std::optional<int> status = mlenv::job::node_main(argc, argv)) std::_Exit(*status);
  if (const auto status = mlenv::compare::minder_main(argc, argv)) std::_Exit(*status);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
