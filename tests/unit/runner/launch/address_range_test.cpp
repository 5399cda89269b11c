#include "runner/launch/address_range.hpp"

#include <gtest/gtest.h>

namespace mlenv::job {
namespace {

const std::string kHeading =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

/// As the kernel of a little-endian machine prints it.
std::string route(const std::string& target, const std::string& mask) {
  return "eth0\t" + target + "\t00000000\t0001\t0\t0\t0\t" + mask + "\t0\t0\t0    \n";
}

TEST(AddressRange, TakesTheUsualOneWhereNothingElseIs) {
  EXPECT_EQ(free_range(""), (AddressRange{10, 209}));
  EXPECT_EQ(free_range(kHeading + route("00000000", "00000000")), (AddressRange{10, 209}));
}

TEST(AddressRange, LeavesWhatARouteTouchesInPartOrInWhole) {
  // 10.209.7.0/24, and 10.210.0.0/15, which is two of ours.
  const std::string table =
      kHeading + route("0007D10A", "00FFFFFF") + route("0000D20A", "0000FEFF");
  EXPECT_EQ(free_range(table), (AddressRange{10, 212}));
}

TEST(AddressRange, RoutesOfOtherNetworksDoNotMatter) {
  // 192.168.1.0/24; 0.0.0.0/1 and 128.0.0.0/1, as tunnels set them.
  const std::string table = kHeading + route("0001A8C0", "00FFFFFF") +
                            route("00000000", "00000080") + route("00000080", "00000080");
  EXPECT_EQ(free_range(table), (AddressRange{10, 209}));
}

TEST(AddressRange, WhereAllPrivateOnesAreTakenItIsThatOfTests) {
  EXPECT_EQ(free_range(kHeading + route("0000000A", "000000FF")), (AddressRange{198, 18}));
}

TEST(AddressRange, NodesHaveAddressesOfTheirOwn) {
  const AddressRange range{10, 209};
  EXPECT_EQ(shown(range.of(0)), "10.209.0.1");
  EXPECT_EQ(shown(range.of(254)), "10.209.0.255");
  EXPECT_EQ(shown(range.of(255)), "10.209.1.0");
}

}  // namespace
}  // namespace mlenv::job
