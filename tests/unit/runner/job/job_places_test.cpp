#include "runner/job/job_places.hpp"

#include <gtest/gtest.h>

#include "runner/node/node_gpus.hpp"

namespace mlenv::job {
namespace {

/// A place of a node with that many GPUs, of which a batch system has given so many.
Place place_with(std::uint64_t gpus, const std::optional<std::uint64_t>& given,
                 const std::string& word, std::uint64_t parts = 0) {
  DrivePlan plan;
  plan.gpus = word;
  NodeState node;
  node.offer.name = "n1";
  node.hello.emplace();
  node.hello->interfaces = {{"eth0", "10.9.0.1", false}};
  node.hello->given_gpus = given;
  node.facts.emplace();
  node.facts->gpus = known(std::vector<Gpu>(gpus), "a test");
  node.facts->mig_devices = known(std::vector<MigDevice>(parts), "a test");
  return place_in(plan, node, 1, {20000});
}

TEST(JobPlaces, GpusAreThoseOfTheNode) {
  EXPECT_EQ(place_with(8, std::nullopt, std::string(kGpusIfAny)).gpus, 8U);
  EXPECT_EQ(place_with(8, std::nullopt, "all").gpus, 8U);
  EXPECT_EQ(place_with(8, std::nullopt, "4").gpus, 4U);
  EXPECT_EQ(place_with(8, std::nullopt, "device=1,3").gpus, 2U);
  EXPECT_EQ(place_with(8, 2, "all").gpus, 2U);
  EXPECT_EQ(place_with(1, 4, "all", 7).gpus, 4U) << "parts of one GPU";
  EXPECT_EQ(place_with(8, std::nullopt, "").gpus, 0U);
  EXPECT_EQ(place_with(0, std::nullopt, std::string(kGpusIfAny)).gpus, 0U);
}

TEST(JobPlaces, GpusAreThoseThatABatchSystemHasGiven) {
  EXPECT_EQ(place_with(8, 2, std::string(kGpusIfAny)).gpus, 2U);
  EXPECT_EQ(place_with(8, 2, "all").gpus, 2U);
  EXPECT_EQ(place_with(8, 4, "2").gpus, 2U);
  EXPECT_EQ(place_with(8, 0, std::string(kGpusIfAny)).gpus, 0U);
  // Where the facts show fewer the rest is not there.
  EXPECT_EQ(place_with(2, 4, "all").gpus, 2U);
}

}  // namespace
}  // namespace mlenv::job
