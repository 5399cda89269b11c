// main of the unit tests: as the program's own, it first lets a re-executed half do its work, which
// ends without exit handlers: the leak checker cannot trace in a namespace.
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/sandbox/sandbox.hpp"
#include "runner/compare/minder.hpp"
#include "runner/local/run.hpp"

int main(int argc, char** argv) {
  if (const std::optional<int> status = mlenv::sandbox_main(argc, argv)) std::_Exit(*status);
  if (const std::optional<int> status = mlenv::run_main(argc, argv)) std::_Exit(*status);
  if (const auto status = mlenv::compare::minder_main(argc, argv)) std::_Exit(*status);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
