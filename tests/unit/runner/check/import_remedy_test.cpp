#include "runner/check/import_remedy.hpp"

#include <gtest/gtest.h>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

TEST(ImportRemedy, NamesDebiansPackageOfALibrary) {
  EXPECT_EQ(debian_package_of("libGL.so.1"), "libgl1");
  EXPECT_EQ(debian_package_of("libgomp.so.1"), "libgomp1");
  EXPECT_EQ(debian_package_of("libfoo-2.so.3"), "libfoo-2-3");
  EXPECT_EQ(debian_package_of("libX11.so.6"), "libx11-6");
  EXPECT_EQ(debian_package_of("libglib-2.0.so.0"), "libglib2.0-0");
}

TEST(ImportRemedy, ComesFromWhatPythonSays) {
  const auto line = [](const FailedImport& failed) { return join(recipe_lines({failed}), " "); };
  EXPECT_EQ(line({"lightgbm", "4", "lightgbm", "OSError: libgomp.so.1: …", "libgomp.so.1", ""}),
            "`system: [libgomp1]`");
  EXPECT_EQ(
      line({"sounddevice", "0.5", "sounddevice", "OSError: PortAudio library not found", "", ""}),
      "`system: [libportaudio2]`");
  EXPECT_EQ(line({"x", "1", "x", "No module named 'yaml'", "", "yaml"}),
            "`packages: [\"PyYAML\"]`");
  EXPECT_EQ(line({"x", "1", "x", "RuntimeError: no", "", ""}), "");
  EXPECT_EQ(line({"x", "1", "x", "ImportError: numpy.core.umath failed to import", "", ""}),
            "`constraints: [\"numpy<2\"]`");
  EXPECT_EQ(line({"x", "1", "x", "RuntimeError: no foo: run `apt-get install libfoo2`", "", ""}),
            "`system: [libfoo2]`");
  // A name that nothing is known of may be a stranger's project; `torch._six` was an older torch's,
  // and what nobody knows of another's part is told alone.
  EXPECT_EQ(line({"x", "1", "x", "No module named 'ourtool'", "", "ourtool"}), "");
  EXPECT_EQ(line({"x", "1", "x", "No module named 'torch._six'", "", "torch._six"}),
            "`constraints: [\"torch<2\"]`");
  EXPECT_EQ(line({"x", "1", "x", "No module named 'torch._nine'", "", "torch._nine"}), "");
  EXPECT_EQ(
      line({"gym", "0.26.2", "x",
            "cannot import name 'rendering' from 'gym.envs.classic_control' (/opt/…)", "", ""}),
      "`constraints: [\"gym<0.22\"]`");
  EXPECT_EQ(
      line({"stempeg", "0.2.3", "x",
            "RuntimeError: ffmpeg or ffprobe could not be found! Please install them", "", ""}),
      "`system: [ffmpeg]`");
  EXPECT_EQ(line({"x", "1", "x", "No module named 'imp'", "", "imp"}), "");
}

}  // namespace
}  // namespace mlenv
