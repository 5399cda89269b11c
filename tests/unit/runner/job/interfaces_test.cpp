#include "runner/job/interfaces.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

NodeHello node_with(std::vector<NodeHello::Interface> interfaces) {
  NodeHello node;
  node.interfaces = std::move(interfaces);
  node.ports = {7};
  return node;
}

const NodeHello kHost = node_with({{"lo", "127.0.0.1", true},
                                   {"lo", "::1", true},
                                   {"eth0", "fe80::5", false},
                                   {"eth0", "fd00::5", false},
                                   {"eth0", "10.0.0.5", false},
                                   {"eth01", "10.1.0.5", false},
                                   {"docker0", "172.17.0.1", false}});

std::string place(std::size_t nodes, const Reach& reach, const std::string& interface = {},
                  const NodeHello& node = kHost) {
  Job job;
  job.interface = interface;
  const Place found = place_of(job, nodes, reach, node);
  EXPECT_EQ(found.ports, node.ports);
  EXPECT_EQ(found.name, reach.name);
  return found.interface + " " + found.address;
}

TEST(InterfacesTest, TheOneThatTheJobNamesExactly) {
  EXPECT_EQ(place(2, {"a", "10.0.0.5", ""}, "eth01"), "eth01 10.1.0.5");
  EXPECT_EQ(place(2, {"a", "", ""}, "eth0"), "eth0 10.0.0.5");
  EXPECT_EQ(place(2, {"a", "fd00::5", ""}, "eth0"), "eth0 fd00::5");
  const Error error = error_of([] { (void)place(2, {"a", "", ""}, "eth"); });
  EXPECT_EQ(error.code(), "no-interface");
  EXPECT_NE(std::string(error.what()).find("`eth01` (10.1.0.5)"), std::string::npos)
      << error.what();
}

TEST(InterfacesTest, TheEnginesThenTheOneWithItsAddress) {
  EXPECT_EQ(place(2, {"a", "", "eth01"}), "eth01 10.1.0.5");
  EXPECT_EQ(place(2, {"a", "10.1.0.5", ""}), "eth01 10.1.0.5");
  EXPECT_EQ(place(2, {"a", "172.17.0.1", ""}), "docker0 172.17.0.1");  // the engine came by it
}

TEST(InterfacesTest, TheOnlyOneThatLeadsOutward) {
  const NodeHello laptop = node_with({{"lo", "127.0.0.1", true},
                                      {"docker0", "172.17.0.1", false},
                                      {"br-12ab", "172.18.0.1", false},
                                      {"wlan0", "fd00::7", false},
                                      {"wlan0", "192.168.1.7", false}});
  EXPECT_EQ(place(2, {"a", "", ""}, "", laptop), "wlan0 192.168.1.7");
  EXPECT_EQ(code_of([] { (void)place(2, {"a", "", ""}); }), "no-interface");  // eth0, eth01
  EXPECT_EQ(code_of([] {
              (void)place(2, {"a", "", ""}, "", node_with({{"lo", "::1", true}}));
            }),
            "no-interface");
}

TEST(InterfacesTest, OneNodeMayUseItsLoopback) {
  EXPECT_EQ(place(1, {"a", "", ""}), "lo 127.0.0.1");
  EXPECT_EQ(place(1, {"a", "10.0.0.5", ""}), "eth0 10.0.0.5");
}

TEST(InterfacesTest, LoopbacksThatPlanRefuses) {
  EXPECT_TRUE(is_loopback("lo", "10.0.0.1"));
  EXPECT_TRUE(is_loopback("eth0", "127.0.1.1"));
  EXPECT_TRUE(is_loopback("eth0", "::1"));
  EXPECT_FALSE(is_loopback("lo1", "10.0.0.1"));
}

}  // namespace
}  // namespace mlenv::job
