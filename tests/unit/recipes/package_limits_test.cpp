#include "recipes/compat/package_limits.hpp"

#include <set>

#include <gtest/gtest.h>

#include "recipes/compat/framework_cuda.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

std::string limit_table(const std::string& row) {
  return "format = 1\ndate = \"2026-11-28\"\nlimits = [\n" + row +
         "\n]\n[sources]\nnotes = \"release notes\"\n";
}

std::string limit_fault_in(const std::string& row) {
  const Error error = error_of([&] { parse_package_limits(limit_table(row), "limits.toml"); });
  const std::string& line = error.frames().front();
  return line.substr(0, line.find('\n'));
}

const std::string kWholeLimit =
    R"({packages = ["torch"], before = "2.3", other = "numpy", specifier = "<2", why = "is old", source = "notes", read = "2026-11-28"})";

std::string limit_row(std::string_view from, std::string_view to) {
  std::string row = kWholeLimit;
  return row.replace(row.find(from), from.size(), to);
}

TEST(PackageLimits, TheBuiltInOnesAreWhole) {
  const PackageLimits& table = package_limits();
  std::set<std::string> used;
  for (const PackageLimit& one : table.limits) used.insert(one.source);
  EXPECT_EQ(used.size(), table.sources.size());  // every source is somebody's
}

TEST(PackageLimits, SayWhereAnEntryIsWrong) {
  EXPECT_EQ(parse_package_limits(limit_table(kWholeLimit), "limits.toml").limits.size(), 1U);
  EXPECT_EQ(limit_fault_in(limit_row("\"<2\"", "\"\"")),
            "limits.toml:4:1: `numpy` is no requirement");
  EXPECT_EQ(limit_fault_in(limit_row("\"notes\"", "\"hearsay\"")),
            "limits.toml:4:100: `hearsay` is none of `sources`");
  EXPECT_EQ(limit_fault_in(limit_row("before", "from = \"2.4\", before")),
            "limits.toml:4:1: `from` is older than `before`");
  EXPECT_EQ(limit_fault_in(limit_row("11-28", "11-29")),
            "limits.toml:4:116: the row is newer than `date`");
}

TEST(PackageLimits, HoldFromOneReleaseToAnother) {
  PackageLimit limit;
  limit.packages = {"torch"};
  limit.from = "2.0";
  limit.before = "2.3";
  EXPECT_TRUE(limit.holds_for("torch", "2.0"));
  EXPECT_TRUE(limit.holds_for("torch", "2.2.2+cu121"));
  EXPECT_FALSE(limit.holds_for("torch", "2.3.0"));
  EXPECT_FALSE(limit.holds_for("torch", "1.13.1"));
  EXPECT_FALSE(limit.holds_for("torchvision", "2.0"));
}

TEST(PackageLimits, KnowThePythonsThatWheelsAreFor) {
  EXPECT_TRUE(has_wheels_for_python("torch", "2.0.1", "3.11"));
  EXPECT_FALSE(has_wheels_for_python("torch", "2.0.1", "3.12"));
  EXPECT_FALSE(has_wheels_for_python("torch", "1.12.1", "3.11"));
  EXPECT_FALSE(has_wheels_for_python("jax", "0.12.0", "3.10"));
  EXPECT_TRUE(has_wheels_for_python("tensorflow", "2.21.0", "3.13"));
  EXPECT_TRUE(has_wheels_for_python("einops", "0.8", "3.13"));
}

// The table for conversions has the same Pythons.
TEST(PackageLimits, AgreeWithTheFrameworksBuilds) {
  struct Case {
    std::string framework;
    std::string package;
    std::string version;
  };
  const std::vector<Case> cases = {
      {"pytorch", "torch", "1.12.1"},         {"pytorch", "torch", "1.13.1"},
      {"pytorch", "torch", "2.1.2"},          {"pytorch", "torch", "2.2.2"},
      {"pytorch", "torch", "2.4.1"},          {"pytorch", "torch", "2.5.1"},
      {"tensorflow", "tensorflow", "2.11.1"}, {"tensorflow", "tensorflow", "2.12.1"},
      {"tensorflow", "tensorflow", "2.15.1"}, {"tensorflow", "tensorflow", "2.19.1"},
      {"tensorflow", "tensorflow", "2.20.0"}};
  for (const Case& one : cases) {
    for (const std::string python : {"3.11", "3.12", "3.13"}) {
      EXPECT_EQ(has_builds_for_python(one.framework, "==" + one.version, python),
                has_wheels_for_python(one.package, one.version, python))
          << one.package << ' ' << one.version << ' ' << python;
    }
  }
}

}  // namespace
}  // namespace mlenv
