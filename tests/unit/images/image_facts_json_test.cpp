#include "images/inspect/image_facts.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

ImageFacts sample_facts() {
  ImageFacts facts;
  facts.name = "bert";
  facts.kind = "image";
  facts.architecture = "amd64";
  facts.cuda_runtimes =
      known(std::vector<FoundLibrary>{{"/x/libcudart.so.13", "13.2.75"}}, "files");
  facts.device_code = known(
      std::vector<DeviceLibrary>{{"/x/libtorch_cuda.so", {"sm_80", "compute_120"}, true}}, "");
  facts.glibc = known(SymbolVersions{"GLIBC_2.34", "/usr/bin/x", "GLIBC_2.36"}, "files");
  facts.waste = unknown<std::vector<Waste>>("a lock");
  facts.environment = {{"NVIDIA_REQUIRE_CUDA", "cuda>=13.2"}};
  return facts;
}

TEST(ImageFactsJson, RoundTrip) {
  const ImageFacts facts = sample_facts();
  EXPECT_EQ(read_image_facts(render_image_facts(facts), "f.json"), facts);
}

TEST(ImageFactsJson, WhatIsNotThereIsUnknown) {
  const ImageFacts facts = read_image_facts(R"({"schema":"mlenv.image-facts/1"})", "f.json");
  EXPECT_FALSE(facts.cuda_runtimes);
  EXPECT_EQ(facts.cuda_runtimes.source, "`f.json` does not say");
}

TEST(ImageFactsJson, OtherFilesAreRefused) {
  try {
    read_image_facts(R"({"schema":"mlenv.facts/1"})", "f.json");
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "bad-facts");
  }
}

}  // namespace
}  // namespace mlenv
