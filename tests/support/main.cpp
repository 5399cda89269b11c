// main of the unit tests: as the program's own, it first lets a re-executed half do its work.
#include <gtest/gtest.h>

#include "base/sandbox/sandbox.hpp"
#include "runner/local/run.hpp"

int main(int argc, char** argv) {
  if (const std::optional<int> status = mlenv::sandbox_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::run_main(argc, argv)) return *status;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
