#include "runner/launch/local_nodes.hpp"

#include <poll.h>
#include <unistd.h>
#include <array>
#include <csignal>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/launch/local_words.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

/// Nodes whose agent is a shell that does what it reads.
std::unique_ptr<NodeStarter> shells(std::size_t nodes) {
  return local_nodes({nodes, "", {"/bin/sh"}});
}

class Shell {
 public:
  Shell(NodeStarter& starter, const NodeOffer& node)
      : started_(starter.start(node)), stream_(started_->take_stream()) {}
  /// What the commands print.
  std::string ask(const std::string& commands) {
    write_all(stream_.to.get(), as_bytes(commands + "\necho END-OF-ANSWER\n"));
    std::string text;
    const std::string end = "END-OF-ANSWER\n";
    while (!text.ends_with(end)) {
      const std::string more = take();
      if (more.empty()) return text + "(it is gone: " + started_->last_words() + ")";
      text += more;
    }
    return text.substr(0, text.size() - end.size());
  }
  /// True when nothing comes any more, now or soon.
  bool is_gone() { return take().empty(); }
  StartedNode& node() { return *started_; }
  void hang_up() { stream_ = {}; }
  int input() const { return stream_.to.get(); }

 private:
  std::string take() {
    pollfd ready{stream_.from.get(), POLLIN, 0};
    constexpr int kMost = 30000;  // milliseconds
    if (::poll(&ready, 1, kMost) <= 0) return "(silence)END-OF-ANSWER\n";
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(stream_.from.get(), buffer.data(), buffer.size());
    return {buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  }
  std::unique_ptr<StartedNode> started_;
  NodeStream stream_;
};

TEST(LocalNodes, EachHasANameAnAddressAndADeviceOfItsOwn) {
  const auto starter = shells(2);
  const std::vector<NodeOffer> offers = starter->offers();
  ASSERT_EQ(offers.size(), 2U);
  Shell first{*starter, offers[0]};
  Shell second{*starter, offers[1]};
  EXPECT_EQ(first.ask("uname -n"), "n1\n");
  EXPECT_EQ(second.ask("uname -n"), "n2\n");
  // What /sys shows, what the kernel says, and what the offer promises.
  EXPECT_EQ(second.ask("cd /sys/class/net; echo *"), "eth0 lo\n");
  EXPECT_EQ(second.ask("grep -oE '[a-z0-9]+:' /proc/net/dev | sort | xargs"), "eth0: lo:\n");
  const std::string trie = second.ask("grep -c ' " + offers[1].address + "$' /proc/net/fib_trie");
  EXPECT_NE(trie, "0\n");
  EXPECT_EQ(offers[1].interface, "eth0");
}

TEST(LocalNodes, ReachOneAnotherByName) {
  const auto starter = shells(2);
  Shell first{*starter, starter->offers()[0]};
  Shell second{*starter, starter->offers()[1]};
  // Listens, and answers in the background.
  const std::string server =
      "import os, socket\n"
      "s = socket.create_server(('n1', 7000))\n"
      "if os.fork() == 0: s.accept()[0].sendall(os.uname().nodename.encode())\n";
  const std::string client =
      "import socket\n"
      "print(socket.create_connection(('n1', 7000), 20).recv(99).decode())\n";
  EXPECT_EQ(first.ask("python3 -c \"" + server + "\""), "");
  EXPECT_EQ(second.ask("python3 -c \"" + client + "\""), "n1\n");
}

std::vector<std::string> devices_in(const std::string& table) {
  std::vector<std::string> names;
  for (const std::string_view line : split(table, '\n')) {
    names.emplace_back(line.substr(0, line.find(':')));
  }
  return names;
}

TEST(LocalNodes, TheMachineSeesNothingOfThem) {
  const std::string before = read_file("/proc/net/dev");
  const auto starter = shells(1);
  Shell node{*starter, starter->offers()[0]};
  EXPECT_EQ(node.ask("echo here"), "here\n");
  EXPECT_EQ(devices_in(read_file("/proc/net/dev")), devices_in(before));
}

pid_t parent_of(const fs::path& process) {
  const std::string status = read_file_if_exists(process / "status").value_or("");
  const std::size_t at = status.find("PPid:\t");
  return at == std::string::npos ? -1 : std::stoi(status.substr(at + 6));
}

/// The node's first process, as this machine numbers it: the child of a child of ours.
pid_t init_of(const std::string& name) {
  for (const fs::path& process : list_folder("/proc")) {
    const auto comm = read_file_if_exists(process / "comm");
    if (!comm || trim(*comm) != "mlenv-" + name) continue;
    const pid_t stage = parent_of(process);
    if (parent_of(fs::path("/proc") / std::to_string(stage)) == ::getpid())
      return std::stoi(process.filename().string());
  }
  return -1;
}

TEST(LocalNodes, APowerCutIsSeenAtOnceAndTheNodeComesBackWithItsAddress) {
  const auto starter = shells(1);
  ASSERT_TRUE(starter->may_come_back());
  const NodeOffer offer = starter->offers()[0];
  std::string cable;
  {
    Shell node{*starter, offer};
    cable = node.ask("cat /sys/class/net/eth0/address; sleep 1000 & :");
    const pid_t init = init_of(offer.name);
    ASSERT_GT(init, 1);
    ::kill(init, SIGKILL);
    EXPECT_TRUE(node.is_gone());
  }
  Shell again{*starter, offer};
  EXPECT_EQ(again.ask("cat /sys/class/net/eth0/address"), cable);
}

TEST(LocalNodes, NothingOfANodeOutlivesItsAgent) {
  const auto starter = shells(1);
  Shell node{*starter, starter->offers()[0]};
  // A process that would live on, and hold the stream, were it not for the node's end.
  EXPECT_EQ(node.ask("setsid sleep 1000 & echo started"), "started\n");
  const pid_t init = init_of("n1");
  ASSERT_GT(init, 1);
  (void)node.ask("exit 7");
  EXPECT_TRUE(node.is_gone());
  EXPECT_LT(init_of("n1"), 0);
}

TEST(LocalNodes, WhatTheAgentSaysOnStandardErrorIsItsLastWords) {
  const auto starter = shells(1);
  Shell node{*starter, starter->offers()[0]};
  (void)node.ask("echo first >&2; echo the reason >&2; exit 3");
  EXPECT_EQ(node.node().last_words(), "first\nthe reason");
}

/// Asks again and again until it is, as a controller does; false when it never is.
bool goes(StartedNode& node) {
  constexpr int kPause = 20;  // milliseconds
  constexpr int kMost = 1500;
  for (int i = 0; i < kMost; ++i) {
    if (node.gone()) return true;
    (void)::poll(nullptr, 0, kPause);
  }
  return false;
}

TEST(LocalNodes, OneThatIsLetGoEndsBesideOthers) {
  const auto starter = shells(1);
  Shell node{*starter, starter->offers()[0]};
  (void)node.ask("echo the reason >&2");
  EXPECT_FALSE(node.node().gone());
  node.hang_up();
  node.node().let_go();
  EXPECT_TRUE(goes(node.node()));
  EXPECT_EQ(node.node().last_words(), "the reason");
  EXPECT_LT(init_of("n1"), 0);
}

TEST(LocalNodes, OneThatDoesNotListenEndsWithItsOwner) {
  const auto starter = shells(1);
  {
    Shell node{*starter, starter->offers()[0]};
    (void)node.ask("trap '' TERM HUP");
    write_all(node.input(), as_bytes(std::string_view("sleep 1000\n")));
    ASSERT_GT(init_of("n1"), 1);
    node.hang_up();
    node.node().let_go();
    EXPECT_FALSE(node.node().gone());
    EXPECT_EQ(node.node().last_words(), "");
  }
  for (int i = 0; i < 500 && init_of("n1") > 0; ++i) (void)::poll(nullptr, 0, 20);
  EXPECT_LT(init_of("n1"), 0);
}

TEST(LocalNodes, OfManyWordsTheLastAreKept) {
  const auto starter = shells(1);
  Shell node{*starter, starter->offers()[0]};
  for (int i = 0; i < 3; ++i) {
    (void)node.ask("head -c 100000 /dev/zero | tr '\\0' x >&2");
    EXPECT_FALSE(node.node().gone());
  }
  (void)node.ask("echo >&2; echo the reason >&2; exit 3");
  EXPECT_TRUE(goes(node.node()));
  EXPECT_EQ(node.node().last_words(), "the reason");
}

TEST(LocalNodes, AnAgentThatIsNotThereIsSaid) {
  const auto starter = local_nodes({1, "", {"/absent/agent"}});
  Shell node{*starter, starter->offers()[0]};
  EXPECT_TRUE(node.is_gone());
  EXPECT_EQ(node.node().last_words(), "cannot start `/absent/agent`: No such file or directory");
}

TEST(LocalNodes, MoreThanABridgeHasPortsForAreRefused) {
  EXPECT_EQ(code_of([] { (void)local_nodes({1001, "", {"/bin/sh"}}); }), "no-node");
}

TEST(LocalNode, TravelsAsWords) {
  const LocalNode node{3, 9, {10, 200}, 12, true, {"/a b", "c"}};
  const LocalNode back = parse_local_node(render(node));
  EXPECT_EQ(render(back), render(node));
  EXPECT_EQ(back.agent, node.agent);
}

}  // namespace
}  // namespace mlenv::job
