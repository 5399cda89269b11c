#include "recipes/resolve/popular_names.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(PopularNames, MisspeltNames) {
  EXPECT_EQ(meant_package("scikit-lern"), "scikit-learn");
  EXPECT_EQ(meant_package("Scikit_Laern"), "scikit-learn");
  EXPECT_EQ(meant_package("numpyy"), "numpy");
  EXPECT_EQ(meant_package("pandsa"), "pandas");
  EXPECT_EQ(meant_package("tranformers"), "transformers");
  EXPECT_EQ(meant_package("matplolib"), "matplotlib");
}

TEST(PopularNames, NamesOfModules) {
  EXPECT_EQ(meant_package("cv2"), "opencv-python-headless");
  EXPECT_EQ(meant_package("skimage"), "scikit-image");
}

TEST(PopularNames, NothingForAGoodNameOrAStrangers) {
  EXPECT_EQ(meant_package("numpy"), "");
  EXPECT_EQ(meant_package("scikit-learn"), "");
  EXPECT_EQ(meant_package("our-internal-project"), "");
  EXPECT_EQ(meant_package("x"), "");
  EXPECT_EQ(meant_package(""), "");
  EXPECT_EQ(meant_package(std::string(200, 'n')), "");
}

}  // namespace
}  // namespace mlenv
