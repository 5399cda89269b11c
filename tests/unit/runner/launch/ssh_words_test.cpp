#include "runner/launch/ssh_words.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runner/launch/node_program.hpp"
#include "runner/launch/ssh_nodes.hpp"
#include "tests/support/child.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

TEST(SshWords, KnowUserAndPortAndEndWithTheHost) {
  const std::vector<std::string> words = ssh_words("/usr/bin/ssh", {"gpu1", 0, "", "jo", 2222});
  const std::vector<std::string> end{words.end() - 6, words.end()};
  EXPECT_EQ(end, (std::vector<std::string>{"-l", "jo", "-p", "2222", "--", "gpu1"}));
  for (const char* option : {"StrictHostKeyChecking=yes", "ControlMaster=no", "ControlPath=none"}) {
    EXPECT_NE(std::find(words.begin(), words.end(), option), words.end()) << option;
  }
}

TEST(SshWords, SayWhatToDoAboutWhatSshSays) {
  const Host host{"gpu1", 0, "", "", 2222};
  const auto told = [&host](const std::string& said) { return explained_ssh(said, host); };
  EXPECT_NE(told("Host key verification failed.").find("`ssh-keyscan -p 2222 gpu1 | ssh-keygen"),
            std::string::npos);
  EXPECT_NE(
      told("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.")
          .find("another host key"),
      std::string::npos);
  EXPECT_NE(
      told("jo@gpu1: Permission denied (publickey).").find("`ssh -o BatchMode=yes -p 2222 gpu1"),
      std::string::npos);
  for (const char* said : {"ssh: Could not resolve hostname gpu1: Name or service not known",
                           "ssh: connect to host gpu1 port 22: Connection refused",
                           "ssh: connect to host gpu1 port 22: No route to host"}) {
    EXPECT_GT(told(said).size(), std::string(said).size()) << said;
  }
  EXPECT_EQ(told("the agent's own words"), "the agent's own words");
}

/// Runs them as a shell on a node would: with this machine's.
class Carried : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_.path() / "program", "#!/bin/sh\necho \"this is $1\"\n");
    fs::create_directory(folder_.path() / "home dir");
  }
  Captured carry(const std::string& shell = "sh") {
    const NodeProgram program{folder_.path() / "program"};
    Command command{Purpose{"test"}};
    const NodeProgram::Carried carried = program.carried_by({shell, "-c"}, /*any_shell=*/true);
    command.argv = carried.command.argv;
    command.extra_fds = carried.command.extra_fds;
    command.env = {{"HOME=" + (folder_.path() / "home dir").string(), "PATH=" + path_}};
    return run_captured(command, std::chrono::seconds{60}, "for the agent");
  }
  fs::path placed() const {
    const fs::path file = folder_.path() / "program";
    return folder_.path() / "home dir/.cache/mlenv/node" / Digest::of(read_file(file)).hex() /
           "mlenv-node";
  }
  TemporaryFolder folder_{temporary_root()};
  std::string path_ = "/usr/bin:/bin";
};

TEST_F(Carried, TheProgramIsBroughtOnceAndBecomesTheAgent) {
  const Captured first = carry();
  EXPECT_EQ(first.out, "this is agent\n") << first.err;
  ASSERT_TRUE(fs::exists(placed()));
  const auto time = fs::last_write_time(placed());
  EXPECT_EQ(carry("bash").out, "this is agent\n");
  EXPECT_EQ(fs::last_write_time(placed()), time);
}

TEST_F(Carried, WhatDoesNotHaveItsDigestIsReplaced) {
  (void)carry();
  write_file(placed(), "#!/bin/sh\necho forged\n");
  EXPECT_EQ(carry().out, "this is agent\n");
  // Nothing else lies there.
  EXPECT_EQ(list_folder(placed().parent_path()), (std::vector<fs::path>{placed()}));
}

TEST_F(Carried, ANodeThatCannotTakeItSaysWhy) {
  fs::create_directories(placed().parent_path().parent_path());
  write_file(placed().parent_path(), "a file in the way");
  const Captured told = carry();
  EXPECT_NE(told.exit.code, 0);
  EXPECT_EQ(told.out, "");
  EXPECT_NE(told.err.find("mlenv-node cannot be put into"), std::string::npos) << told.err;
}

TEST_F(Carried, AProgramThatDoesNotRunThereIsSaid) {
  write_file(folder_.path() / "program", "#!/absent/interpreter\n");
  const Captured told = carry();
  EXPECT_NE(told.exit.code, 0);
  EXPECT_NE(told.err.find("cannot be run"), std::string::npos) << told.err;
}

TEST_F(Carried, ThroughShellsThatAreNotPosix) {
  if (!find_program("fish")) GTEST_SKIP() << "there is no fish";
  EXPECT_EQ(carry("fish").out, "this is agent\n");
}

TEST(SshNodes, NeedTheProgramOfNodes) {
  EXPECT_EQ(code_of([] {
              (void)ssh_nodes({{{"n1", 0, "", "", 0}}, "/absent/mlenv-node"});
            }),
            "absent");
}

TEST(SshNodes, OfferTheHostsAsTheyAreWritten) {
  const auto starter =
      ssh_nodes({parse_hosts("n1 slots=2 address=10.0.0.1\nn2\n", "h"), "/bin/true"});
  const std::vector<NodeOffer> offers = starter->offers();
  ASSERT_EQ(offers.size(), 2U);
  EXPECT_EQ(offers[0].name + " " + offers[0].address, "n1 10.0.0.1");
  EXPECT_EQ(offers[0].slots, 2U);
  EXPECT_EQ(offers[1].address, "");
  EXPECT_EQ(code_of([&] { (void)starter->start({"n9", "", ""}); }), "no-node");
}

}  // namespace
}  // namespace mlenv::job
