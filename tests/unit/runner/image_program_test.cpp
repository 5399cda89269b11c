#include "runner/image_program.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(ImageProgram, IsFoundInWhatIsKnownOfLayers) {
  LayerFacts below;
  below.entries = {{"file", "opt/old/bin/tool", "", 3}, {"file", "usr/bin/tool", "", 3}};
  LayerFacts above;
  above.entries = {{"gone", "opt/old/bin/tool", "", 0},
                   {"link", "opt/venv", "real", 0},
                   {"file", "opt/real/bin/lab", "", 3},
                   {"file", "usr/share/jupyter/kernels/python3/kernel.json", "", 3}};
  const KnownNames names{{below, above}};
  ImageConfig image;
  image.env = {"PATH=/opt/old/bin:/opt/venv/bin:/usr/bin"};
  EXPECT_EQ(program_in_image(image, names, "tool"), "/usr/bin/tool");
  EXPECT_EQ(program_in_image(image, names, "lab"), "/opt/venv/bin/lab");
  EXPECT_EQ(program_in_image(image, names, "other"), std::nullopt);
  EXPECT_TRUE(names.has_entries("/usr/share/jupyter/kernels"));
  EXPECT_FALSE(names.has_entries("/usr/share/jupyter/kernel"));
}

}  // namespace
}  // namespace mlenv
