#include "runner/mpi/hosts.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv::mpi {
namespace {

const std::vector<Host> kHosts{{"gpu1.lab", "10.0.0.1", 12000, 2},
                               {"gpu2.lab", "fd00::2", 12001, 4}};

TEST(MpiHosts, PassThroughAVariable) {
  EXPECT_EQ(render_hosts(kHosts), "gpu1.lab=10.0.0.1;12000;2,gpu2.lab=fd00::2;12001;4");
  EXPECT_EQ(parse_hosts(render_hosts(kHosts)), kHosts);
  EXPECT_EQ(slots_of(kHosts), 6U);
}

TEST(MpiHosts, OtherTextIsRefused) {
  for (const char* text : {"", "gpu1", "=10.0.0.1;1;1", "a=;1;1", "a=10.0.0.1;1", "a=10.0.0.1;x;1",
                           "a=10.0.0.1;70000;1", "a=10.0.0.1;1;-1", "a=10.0.0.1;1;1,"}) {
    EXPECT_EQ(code_of([&] { (void)parse_hosts(text); }), "bad-stream") << text;
  }
}

TEST(MpiHosts, AreFoundByWhatProgramsCallThem) {
  EXPECT_EQ(host_called(kHosts, "gpu2.lab"), &kHosts[1]);
  EXPECT_EQ(host_called(kHosts, "gpu2"), &kHosts[1]);
  EXPECT_EQ(host_called(kHosts, "jo@10.0.0.1"), kHosts.data());
  EXPECT_EQ(host_called(kHosts, "gpu3"), nullptr);
  const std::vector<Host> alike{{"a.x", "10.0.0.1", 1, 1}, {"a.y", "10.0.0.2", 1, 1}};
  EXPECT_EQ(host_called(alike, "a"), nullptr);
}

TEST(MpiHosts, Files) {
  EXPECT_EQ(hostfile(kHosts), "gpu1.lab slots=2\ngpu2.lab slots=4\n");
  EXPECT_EQ(hydra_hostfile(kHosts), "gpu1.lab:2\ngpu2.lab:4\n");
}

TEST(MpiHosts, TheSmallestNetworkOfAll) {
  EXPECT_EQ(common_network({"10.77.0.2", "10.77.0.3", "10.77.0.4"}), "10.77.0.0/29");
  EXPECT_EQ(common_network({"10.77.0.2"}), "10.77.0.2/32");
  EXPECT_EQ(common_network({"10.0.0.1", "172.16.0.1"}), "");
  EXPECT_EQ(common_network({"10.0.0.1", "fd00::1"}), "");
  EXPECT_EQ(common_network({}), "");
}

}  // namespace
}  // namespace mlenv::mpi
