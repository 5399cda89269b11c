#include "builder/build_output.hpp"

#include <string>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

constexpr std::size_t kMuch = 2000;

TEST(BuildOutput, LeavesOutTheCallsOfBuildTools) {
  EXPECT_EQ(
      shown_output(
          "CMake Error at CMakeLists.txt:5\n"
          "Traceback (most recent call last):\n"
          "  File \"/opt/venv/lib/python3.11/site-packages/setuptools/dist.py\", line 9, in run\n"
          "    super().run_command(command)\n"
          "           ^^^^^^^^^^^^^^^^^^^^\n"
          "  File \"/usr/lib/python3.11/subprocess.py\", line 413, in check_call\n"
          "    raise CalledProcessError(retcode, cmd)\n"
          "  File \"<frozen importlib._bootstrap>\", line 1, in load\n"
          "  File \"/srv/src/setup.py\", line 3, in <module>\n"
          "    build()\n"
          "RuntimeError: no CMake\n",
          kMuch),
      "CMake Error at CMakeLists.txt:5\n"
      "Traceback (most recent call last):\n"
      "  File \"/srv/src/setup.py\", line 3, in <module>\n"
      "    build()\n"
      "RuntimeError: no CMake");
}

TEST(BuildOutput, ShowsTheEndFromTheStartOfALine) {
  EXPECT_EQ(shown_output("one line\nanother line\nthe last line", 20), "…\nthe last line");
  EXPECT_EQ(shown_output("a line without an end", 5), "…\nn end");
  EXPECT_EQ(shown_output("short", kMuch), "short");
  EXPECT_EQ(shown_output("", kMuch), "");
}

TEST(BuildOutput, PassesByNoLineThatIsNoCall) {
  constexpr const char* kSaid =
      "    indented by a compiler\n  File \"unfinished\n  File \"/srv/src/a.py\", line 1, in f";
  EXPECT_EQ(shown_output(kSaid, kMuch), kSaid);
}

}  // namespace
}  // namespace mlenv
