#include "runner/check/import_remedy.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(ImportRemedy, NamesDebiansPackageOfALibrary) {
  EXPECT_EQ(debian_package_of("libGL.so.1"), "libgl1");
  EXPECT_EQ(debian_package_of("libgomp.so.1"), "libgomp1");
  EXPECT_EQ(debian_package_of("libfoo-2.so.3"), "libfoo-2-3");
  EXPECT_EQ(debian_package_of("libX11.so.6"), "libx11-6");
  EXPECT_EQ(debian_package_of("libglib-2.0.so.0"), "libglib2.0-0");
}

TEST(ImportRemedy, NamesThePackageOfAModule) {
  EXPECT_EQ(python_package_of("sklearn.utils"), "scikit-learn");
  EXPECT_EQ(python_package_of("cv2"), "opencv-python-headless");
  EXPECT_EQ(python_package_of("einops"), "einops");
}

TEST(ImportRemedy, ComesFromWhatPythonSays) {
  const auto line = [](const FailedImport& failed) { return recipe_line(remedy_of(failed)); };
  EXPECT_EQ(line({"lightgbm", "4", "lightgbm", "OSError: libgomp.so.1: …", "libgomp.so.1", ""}),
            "add `system: [libgomp1]`");
  EXPECT_EQ(
      line({"sounddevice", "0.5", "sounddevice", "OSError: PortAudio library not found", "", ""}),
      "add `system: [libportaudio2]`");
  EXPECT_EQ(line({"x", "1", "x", "No module named 'yaml'", "", "yaml"}),
            "add `packages: [\"pyyaml\"]`");
  EXPECT_EQ(line({"x", "1", "x", "RuntimeError: no", "", ""}), "");
}

}  // namespace
}  // namespace mlenv
