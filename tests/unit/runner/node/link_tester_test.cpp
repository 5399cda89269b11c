// Link testers of real agents, each at a loopback address of its own.
#include "runner/node/link_tester.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/socket_address.hpp"
#include "runner/job/preflight_run.hpp"
#include "runner/node/link_sockets.hpp"
#include "tests/support/node_harness.hpp"

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;
using test::TestNode;

const std::string kToken = "0123456789abcdef0123456789abcdef";

LinkClock::time_point knock_end() { return LinkClock::now() + milliseconds(2000); }

LinkReached knock(LinkDoor& door, const LinkPeer& at, const std::string& token) {
  std::vector<LinkCaller> callers;
  callers.emplace_back("127.0.0.2", at, token, LinkCall{'c', 1, 1});
  wait_for_callers(callers, door, knock_end());
  return callers.front().reached();
}

TEST(LinkDoor, LetsThoseInWhoKnowTheToken) {
  LinkDoor door{"127.0.0.1", kToken};
  EXPECT_EQ(knock(door, {0, "127.0.0.1", door.port()}, kToken).how, kReached);
  EXPECT_FALSE(door.take({'c', 2, 1}));
  EXPECT_TRUE(door.take({'c', 1, 1}));
  EXPECT_FALSE(door.take({'c', 1, 1}));
  const LinkReached other = knock(door, {0, "127.0.0.1", door.port()}, std::string(32, '0'));
  EXPECT_EQ(other.how, kStranger);
  EXPECT_EQ(other.said, "it closed the connection");
  EXPECT_FALSE(door.take({'c', 1, 1}));
}

TEST(LinkDoor, IsAtTheAddressThatWasAskedForAlone) {
  LinkDoor door{"127.0.0.1", kToken};
  const LinkReached other = knock(door, {0, "127.0.0.3", door.port()}, kToken);
  EXPECT_EQ(other.how, kRefused);
  EXPECT_EQ(other.said, "Connection refused");
}

TEST(LinkDoor, TellsSomebodyElse) {
  LinkDoor door{"127.0.0.1", kToken};
  const auto at = SocketAddress::of("127.0.0.4", 0);
  ASSERT_TRUE(at);
  const Fd server{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(::bind(server.get(), at->get(), at->size()), 0);
  ASSERT_EQ(::listen(server.get(), 1), 0);
  const LinkPeer peer{0, "127.0.0.4", SocketAddress::own_of(server)->port()};
  std::vector<LinkCaller> callers;
  callers.emplace_back("127.0.0.2", peer, kToken, LinkCall{'c', 1, 1});
  wait_for_callers(callers, door, LinkClock::now() + milliseconds(50));
  EXPECT_EQ(callers.front().reached().how, kSilent);  // it says nothing
  EXPECT_NE(callers.front().reached().said, "no answer");
}

TEST(LinkRequest, IsReadAsItWasWritten) {
  LinkRequest request;
  request.what = kLinkRing;
  request.round = 7;
  request.peers = {{1, "10.0.0.2", 4711}, {2, "fd00::3", 4712}};
  request.bytes = 1 << 20;
  EXPECT_EQ(render_link_request(parse_link_request(render_link_request(request))),
            render_link_request(request));
  for (const char* const text :
       {"", "{}", "[1]", "{\"schema\":\"mlenv.link-request/1\",\"peers\":3}"}) {
    try {
      (void)parse_link_request(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "bad-stream");
    }
  }
}

class PreflightOfAgents : public testing::Test {
 protected:
  PreflightOfAgents() : folder_(temporary_root()) {}

  void add_node() {
    const std::size_t number = nodes_.size();
    const std::string name = "n" + std::to_string(number + 1);
    described_.push_back(
        {name, "127.0.0." + std::to_string(number + 1), "lo", std::nullopt, "one"});
    nodes_.push_back(std::make_unique<TestNode>(folder_.path() / name));
    TestNode& node = *nodes_.back();
    node.link().meet("job", 0);
    ASSERT_TRUE(node.until([&] { return node.heard().hello || node.heard().lost; }));
  }
  const Preflight& run() {
    run_ = std::make_unique<PreflightRun>(
        described_, kToken, [this](std::size_t node, const LinkRequest& request) {
          nodes_[node]->link().link_test(render_link_request(request));
        });
    const auto until = LinkClock::now() + std::chrono::seconds(60);
    while (!run_->over() && LinkClock::now() < until) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        (void)nodes_[i]->until([] { return false; }, milliseconds(5));
        std::vector<std::string> answers;
        answers.swap(nodes_[i]->heard_link_tests());
        for (const std::string& one : answers) run_->heard(i, one);
        if (nodes_[i]->heard().lost) run_->lost(i, *nodes_[i]->heard().lost);
      }
      run_->tick();
    }
    EXPECT_TRUE(run_->over());
    return run_->result();
  }

  TemporaryFolder folder_;
  std::vector<PreflightNode> described_;
  std::vector<std::unique_ptr<TestNode>> nodes_;
  std::unique_ptr<PreflightRun> run_;
};

TEST_F(PreflightOfAgents, MeasuresLinksAndARing) {
  for (int i = 0; i < 3; ++i) add_node();
  const Preflight& found = run();
  EXPECT_EQ(found.links.size(), 6U);
  for (const PreflightLink& link : found.links) {
    EXPECT_EQ(link.reached, kReached) << link.said;
    EXPECT_GT(link.bits_per_second.value_or(0), 1e6);
    EXPECT_GT(link.round_trip_seconds.value_or(0), 0);
  }
  EXPECT_EQ(found.ring.problem, "");
  EXPECT_TRUE(found.ring.sums_right);
  EXPECT_GT(found.ring.seconds.value_or(0), 0);
  EXPECT_GE(found.ring.bytes, 65536U);
}

TEST_F(PreflightOfAgents, NamesANodeThatIsNotThere) {
  for (int i = 0; i < 3; ++i) add_node();
  nodes_[1]->kill();
  const Preflight& found = run();
  EXPECT_EQ(found.verdict, "broken");
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings.front().nodes, std::vector<std::uint64_t>{1});
  EXPECT_FALSE(found.ring.seconds);
}

TEST_F(PreflightOfAgents, TellsAnAddressThatIsNotTheNodes) {
  for (int i = 0; i < 2; ++i) add_node();
  described_[1].address = "192.0.2.77";
  const Preflight& found = run();
  EXPECT_EQ(found.verdict, "broken");
  ASSERT_FALSE(found.findings.empty());
  EXPECT_NE(found.findings.front().text.find("cannot listen at 192.0.2.77"), std::string::npos)
      << found.findings.front().text;
}

}  // namespace
}  // namespace mlenv::job
