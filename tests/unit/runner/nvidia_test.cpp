// What NVIDIA's libraries answered, put together. The libraries themselves are not at hand in
// tests.
#include "runner/facts/nvidia.hpp"

#include <gtest/gtest.h>

#include "runner/facts/nvlinks.hpp"

namespace mlenv {
namespace {

using nvidia::LinkedGpu;
using nvidia::Links;
using nvidia::links_between;

LinkedGpu gpu_at(const std::string& address, Links links) {
  return {known(address, "NVML"), known(std::move(links), "NVML")};
}

TEST(NvLinks, LeadToAGpuOrToACommonSwitch) {
  EXPECT_EQ(*links_between(gpu_at("A", {{{"B", 4}}, 0}), gpu_at("B", {{{"A", 4}}, 0})), 4U);
  EXPECT_EQ(*links_between(gpu_at("A", {{{"S1", 6}, {"S2", 6}}, 0}),
                           gpu_at("B", {{{"S1", 6}, {"S2", 4}}, 0})),
            10U);
  EXPECT_EQ(*links_between(gpu_at("A", {{{"C", 4}}, 0}), gpu_at("B", {{{"D", 4}}, 0})), 0U);
  EXPECT_EQ(*links_between(gpu_at("A", {}), gpu_at("B", {})), 0U) << "none is up";
}

TEST(NvLinks, ThatLeadNobodyKnowsWhereAreNotNone) {
  const Number untold = links_between(gpu_at("A", {{}, 18}), gpu_at("B", {{}, 18}));
  EXPECT_FALSE(untold);
  EXPECT_NE(untold.source.find("18 and 18 links"), std::string::npos) << untold.source;
  EXPECT_EQ(*links_between(gpu_at("A", {{}, 4}), gpu_at("B", {{{"A", 4}}, 0})), 4U)
      << "the other one tells";
  EXPECT_FALSE(links_between(gpu_at("A", {{}, 4}), gpu_at("B", {{{"S", 4}}, 0})));
  EXPECT_EQ(*links_between(gpu_at("A", {{}, 4}), gpu_at("B", {})), 0U) << "it has no links";
  const LinkedGpu silent{known<std::string>("A", "NVML"), unknown<Links>("GPU is lost")};
  EXPECT_EQ(links_between(silent, gpu_at("B", {{}, 4})).source, "GPU is lost");
  EXPECT_EQ(*nvidia::count_of(known(Links{{{"S", 2}}, 3}, "NVML")), 5U);
}

TEST(GpuAnswers, OfAHangingLibrarySayWhyEach) {
  const std::string why = "`mlenv __facts nvml`: it did not end within 5 s";
  const GpuAnswers answers = answers_of(unknown<std::string>(why), "nvml");
  EXPECT_EQ(answers.user_driver, unknown<std::string>(why));
  EXPECT_EQ(answers.cuda_version, unknown<std::string>(why));
  EXPECT_EQ(answers.cuda_status, unknown<std::uint64_t>(why));
  EXPECT_EQ(answers.dma_buf, unknown<bool>(why));
  EXPECT_EQ(answers.gpus, unknown<std::vector<Gpu>>(why));
  EXPECT_EQ(answers.paths, unknown<std::vector<GpuPath>>(why));
  const GpuAnswers torn = answers_of(known<std::string>("{", "nvml"), "nvml");
  EXPECT_TRUE(torn.paths.source.starts_with("nvml gave no answer: ")) << torn.paths.source;
}

}  // namespace
}  // namespace mlenv
