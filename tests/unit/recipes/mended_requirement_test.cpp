// What releases of old ask for, as it was meant.
#include "recipes/mended_requirement.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(MendedRequirement, IsWhatWasMeant) {
  EXPECT_EQ(mended_requirement("opencv-python (>=3.)"), "opencv-python (>=3)");
  EXPECT_EQ(mended_requirement("opencv-python>=3. ; extra == 'all'"),
            "opencv-python>=3 ; extra == 'all'");
  EXPECT_EQ(mended_requirement("numpy (>=1.8.*)"), "numpy (>=1.8)");
  EXPECT_EQ(mended_requirement("x (>=1.0<2.0)"), "x (>=1.0,<2.0)");
  EXPECT_EQ(mended_requirement("x >=1.0,"), "x >=1.0");
  EXPECT_EQ(mended_requirement("tzdata>=\"2021\""), "tzdata>=2021");
  EXPECT_EQ(mended_requirement("x ==1.8*"), "x ==1.8.*");
}

TEST(MendedRequirement, StaysWhereItIsOneOrNothingHelps) {
  EXPECT_EQ(mended_requirement("numpy>=1.8 ; python_version < '3'"),
            "numpy>=1.8 ; python_version < '3'");
  EXPECT_EQ(mended_requirement("foo2>=1,<2"), "foo2>=1,<2");
  EXPECT_EQ(mended_requirement("foo2"), "foo2");
  EXPECT_EQ(mended_requirement("foo[a]==1.*"), "foo[a]==1.*");
  EXPECT_EQ(mended_requirement("x @ https://host.example/x-1.tar.gz"),
            "x @ https://host.example/x-1.tar.gz");
  EXPECT_EQ(mended_requirement("!!"), "!!");
}

}  // namespace
}  // namespace mlenv
