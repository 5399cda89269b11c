#include "runner/launch/hosts.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

std::string mistakes_in(const std::string& text) {
  return error_of([&] { (void)parse_hosts(text, "hosts"); }).what();
}

TEST(Hosts, AreReadWithWhatIsSaidOfThem) {
  const std::vector<Host> hosts = parse_hosts(
      "# two nodes\n"
      "gpu1 slots=4 address=10.0.0.1   # the old one\r\n"
      "\n"
      "\tgpu2\tuser=jo.doe port=2222 address=fd00::2\n",
      "hosts");
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[0], (Host{"gpu1", 4, "10.0.0.1", "", 0}));
  EXPECT_EQ(hosts[1], (Host{"gpu2", 0, "fd00::2", "jo.doe", 2222}));
}

TEST(Hosts, OpenMpiFilesAreReadAsTheyAre) {
  const std::vector<Host> hosts =
      parse_hosts("aa slots=2 max_slots=2\nbb slots=2 max-slots=20\n", "h");
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[1], (Host{"bb", 2, "", "", 0}));
}

TEST(Hosts, AnAddressWithAZeroByteIsNone) {
  using namespace std::string_literals;
  EXPECT_NE(mistakes_in("gpu1 address=10.0.0.1\0x\n"s).find("is no IPv4 or IPv6 address"),
            std::string::npos);
}

TEST(Hosts, AllMistakesAreShownWithTheirPlace) {
  EXPECT_EQ(mistakes_in("gpu1 slot=4\n"
                        "-oProxyCommand=x\n"
                        "gpu2 slots=0 port=70000 address=gpu2\n"
                        "gpu1 fast\n"),
            "hosts:1:6: a host has no `slot`; did you mean `slots`?\n"
            "    gpu1 slot=4\n"
            "         ^\n"
            "hosts:2:1: `-oProxyCommand=x` is no name of a host\n"
            "    -oProxyCommand=x\n"
            "    ^\n"
            "hosts:3:6: the slots of a host are a number from 1 to 1024\n"
            "    gpu2 slots=0 port=70000 address=gpu2\n"
            "         ^\n"
            "hosts:3:14: a port is a number from 1 to 65535\n"
            "    gpu2 slots=0 port=70000 address=gpu2\n"
            "                 ^\n"
            "hosts:3:25: `gpu2` is no IPv4 or IPv6 address\n"
            "    gpu2 slots=0 port=70000 address=gpu2\n"
            "                            ^\n"
            "hosts:4:1: `gpu1` stands here twice\n"
            "    gpu1 fast\n"
            "    ^\n"
            "hosts:4:6: after its host a line has `KEY=VALUE` alone\n"
            "    gpu1 fast\n"
            "         ^");
}

TEST(Hosts, NoWordBecomesAnOptionOfSsh) {
  for (const char* line :
       {"h user=-oProxyCommand=x", "h user=", "-F/dev/null", "h;reboot", "$(id)"}) {
    EXPECT_EQ(code_of([&] { (void)parse_hosts(line, "hosts"); }), "bad-hosts") << line;
  }
}

TEST(Hosts, AFileThatNamesNoneIsRefused) {
  EXPECT_EQ(mistakes_in("# none\n"), "`hosts` names no host");
}

TEST(Hosts, NamesBetweenCommasDoAsWell) {
  const std::vector<Host> hosts = hosts_of("gpu1,gpu2.example");
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[1].name, "gpu2.example");
  for (const char* words : {"gpu1,,gpu2", "gpu1 slots=2", "", "absent/hosts", "gpu1,gpu 2"}) {
    EXPECT_EQ(code_of([&] { (void)hosts_of(words); }), "bad-hosts") << words;
  }
}

TEST(Hosts, AFileOfThatNameIsRead) {
  const TemporaryFolder folder{temporary_root()};
  write_file(folder.path() / "nodes", "gpu7 slots=8\n");
  EXPECT_EQ(hosts_of((folder.path() / "nodes").string()),
            (std::vector<Host>{{"gpu7", 8, "", "", 0}}));
}

TEST(Hosts, SlotsBoundTheRanks) {
  const std::vector<Host> all = parse_hosts("a slots=4\nb slots=2\n", "hosts");
  EXPECT_EQ(ranks_in_slots(all, std::nullopt), 2U);
  EXPECT_EQ(ranks_in_slots(all, 1), 1U);
  EXPECT_EQ(ranks_in_slots(all, 2), 2U);
  EXPECT_EQ(code_of([&] { (void)ranks_in_slots(all, 3); }), "bad-hosts");
  const std::vector<Host> some = parse_hosts("a slots=4\nb\n", "hosts");
  EXPECT_EQ(ranks_in_slots(some, std::nullopt), 1U);
  EXPECT_EQ(ranks_in_slots(some, 4), 4U);
  EXPECT_EQ(code_of([&] { (void)ranks_in_slots(some, 5); }), "bad-hosts");
}

}  // namespace
}  // namespace mlenv::job
