// Which shell a person gets.
#include <gtest/gtest.h>

#include <set>

#include "base/process.hpp"
#include "runner/local/shell.hpp"

namespace mlenv::test {
namespace {

std::string best_of(const std::set<std::string>& there) {
  return best_shell([&](const std::string& path) { return there.contains(path); });
}

TEST(Shell, IsTheFirstThatIsThere) {
  EXPECT_EQ(best_of({"/bin/bash", "/bin/zsh"}), "/bin/bash");
  EXPECT_EQ(best_of({"/bin/ash", "/usr/bin/zsh"}), "/usr/bin/zsh");
  EXPECT_EQ(best_of({}), "/bin/sh");
}

TEST(Shell, IsChosenByTheImagesOwn) {
  Command command{Purpose{"test"}};
  command.argv = {"/bin/sh", "-c", shell_choice()};
  EXPECT_EQ(run_captured(command, std::chrono::seconds{60}, "echo started\n").out, "started\n");
}

}  // namespace
}  // namespace mlenv::test
