#include "recipes/marker.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

const MarkerEnvironment kArm{"3.11.2", "aarch64"};

bool holds(std::string_view marker, const std::set<std::string>& extras = {}) {
  EXPECT_FALSE(marker_mistake(marker)) << marker;
  return marker_holds(marker, kArm, extras);
}

TEST(Marker, ComparesVersionsAsVersions) {
  for (const char* marker :
       {"python_version >= '3.9'", "python_version < '3.20'", "python_version == '3.11'",
        "python_version == '3.11.*'", "python_full_version ~= '3.11.1'", "'3.9' < python_version",
        "implementation_version >= '3.11.2'", "python_version in '3.10 3.11'",
        "python_version not in '3.1, 3.12'", "python_version != '3.9'"}) {
    EXPECT_TRUE(holds(marker)) << marker;
  }
  for (const char* marker :
       {"python_version < '3.9'", "python_full_version == '3.11'", "'3.11' < python_version",
        "python_version in '3.110 3.1'", "python_version >= 'three'"}) {
    EXPECT_FALSE(holds(marker)) << marker;
  }
}

TEST(Marker, ComparesTheRestAsText) {
  for (const char* marker :
       {"platform_machine == 'aarch64'", "'arch' in platform_machine", "sys_platform == 'linux'",
        "sys.platform != \"win32\"", "platform_system == 'Linux' and os_name == 'posix'",
        "implementation_name == 'cpython'", "platform_python_implementation == 'CPython'",
        "platform_release == ''", "'bsd' not in sys_platform"}) {
    EXPECT_TRUE(holds(marker)) << marker;
  }
  for (const char* marker : {"platform_machine == 'x86_64'", "os_name == 'nt'",
                             "platform_version >= '5'", "platform_machine in 'x86_64 arm64'"}) {
    EXPECT_FALSE(holds(marker)) << marker;
  }
  EXPECT_TRUE(marker_holds("platform_machine == 'x86_64'", {"3.11.2", "x86_64"}));
}

TEST(Marker, AndBindsCloserThanOr) {
  EXPECT_TRUE(holds("os_name == 'posix' or os_name == 'nt' and os_name == 'x'"));
  EXPECT_FALSE(holds("(os_name == 'posix' or os_name == 'nt') and os_name == 'x'"));
  EXPECT_TRUE(holds("os_name == 'nt' and os_name == 'x' or os_name == 'posix'"));
  EXPECT_TRUE(marker_holds("", kArm));
}

TEST(Marker, KnowsTheExtrasThatAreAsked) {
  EXPECT_FALSE(holds("extra == 'fast'"));
  EXPECT_TRUE(holds("extra != 'fast'"));
  EXPECT_TRUE(holds("extra == 'Fast_Mode' and python_version > '3'", {"fast-mode", "dev"}));
  EXPECT_TRUE(holds("'dev' == extra", {"dev"}));
  EXPECT_FALSE(holds("'dev' in extras", {"dev"}));
  EXPECT_FALSE(holds("'test' in dependency_groups"));
}

TEST(Marker, ReachesAllImagesOrNone) {
  EXPECT_EQ(marker_reach(""), MarkerReach::all);
  EXPECT_EQ(marker_reach("sys_platform == 'linux'"), MarkerReach::all);
  EXPECT_EQ(marker_reach("sys_platform == 'darwin'"), MarkerReach::none);
  EXPECT_EQ(marker_reach("platform_machine == 'x86_64'"), MarkerReach::some);
  EXPECT_EQ(marker_reach("extra == 'gpu'"), MarkerReach::none);
  EXPECT_EQ(marker_reach("extra == 'gpu'", {"gpu"}), MarkerReach::all);
}

}  // namespace
}  // namespace mlenv
