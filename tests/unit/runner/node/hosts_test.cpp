#include "runner/node/hosts.hpp"

#include <gtest/gtest.h>

namespace mlenv::job {
namespace {

TEST(HostsOfARank, HaveTheJobsNodesFirstAndNoLoopbackUnderTheirNames) {
  EXPECT_EQ(hosts_with_own("127.0.0.1 localhost\n10.0.0.1 n1 gpu1.lab\n10.0.0.2 n2\n",
                           "# Debian's\n127.0.0.1\tlocalhost\n127.0.1.1\tgpu1.lab gpu1\n"
                           "\n10.9.9.9 storage # of the lab\n192.168.0.1 n2\n"),
            "127.0.0.1 localhost\n10.0.0.1 n1 gpu1.lab\n10.0.0.2 n2\n"
            "127.0.0.1\tlocalhost\n10.9.9.9 storage # of the lab\n192.168.0.1 n2\n");
}

TEST(HostsOfARank, AreTheJobsWhereTheNodeHasNone) {
  EXPECT_EQ(hosts_with_own("10.0.0.1 n1\n", ""), "10.0.0.1 n1\n");
}

}  // namespace
}  // namespace mlenv::job
