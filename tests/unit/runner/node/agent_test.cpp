// Agents in processes of their own, and containers of the host's own /usr by the real runtime.
#include "runner/node/agent.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runner/node/program.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/node_harness.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;
using test::TestNode;

class AgentTest : public testing::Test {
 protected:
  AgentTest() : folder_(temporary_root()), store_(folder_.path() / "store") {}

  void SetUp() override {
    if (!find_program("runc")) GTEST_SKIP() << "`runc` is not installed";
    if (!fs::is_symlink("/bin")) GTEST_SKIP() << "this machine's /bin is not in /usr";
  }
  fs::path node_store() const { return folder_.path() / "node"; }

  /// Folders and links; the host's /usr is mounted into it.
  Image image() {
    std::vector<TestEntry> entries;
    for (const char* name : {"usr", "etc", "proc", "sys", "dev", "tmp", "run", "root"}) {
      entries.push_back(test_folder(name));
    }
    for (const char* name : {"bin", "sbin", "lib", "lib64"}) {
      entries.push_back(test_symlink(name, std::string("usr/") + name));
    }
    entries.push_back(test_file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"));
    const std::string noise = random_bytes(3 << 20);
    const Layer base = put_layer(store_, test_tar(entries), "base");
    const Layer data = put_layer(store_, test_tar({test_file("data", noise)}), "data", true);
    Image made = compose_image({}, {base, data}, 0);
    store_.put_image(made);
    return made;
  }
  static std::string random_bytes(std::size_t size) {
    std::string text(size, '\0');
    FdSource source{open_file("/dev/urandom").release()};
    (void)source.read(std::as_writable_bytes(std::span(text.data(), text.size())));
    return text;
  }

  static RankStart rank(std::uint64_t number, const Image& image, const std::string& script) {
    RankStart start;
    start.rank = number;
    start.record.image = {"test", image.digest().str(), std::nullopt};
    start.record.argv = {"/bin/sh", "-c", script};
    start.run.config = image.settings;
    start.run.mounts = {{"/usr", "/usr", true}};
    start.run.argv = start.record.argv;
    return start;
  }
  /// A node that has the image.
  void make_ready(TestNode& node, const Image& image) {
    node.link().meet("job-1", 2);
    node.link().send_image(store_, image.digest().str());
    ASSERT_TRUE(node.until([&] { return !node.heard().image.empty() || trouble(node); }));
    ASSERT_EQ(node.heard().image, image.digest().str()) << words(node);
  }
  static bool trouble(const TestNode& node) {
    return !node.heard().failed.empty() || node.heard().lost;
  }
  static std::string words(const TestNode& node) {
    std::string text = node.heard().lost.value_or("");
    for (const std::string& one : node.heard().failed) text += "\n" + one;
    return text;
  }
  static std::string why(const TestNode& node, std::uint64_t rank) {
    const auto found = node.heard().ended.find(rank);
    if (found == node.heard().ended.end()) return "it goes on";
    return found->second.failure ? found->second.failure->message : "";
  }

  TemporaryFolder folder_;
  Store store_;
};

TEST_F(AgentTest, TakesAnImageAndRunsARank) {
  const Image made = image();
  TestNode node{node_store()};
  make_ready(node, made);
  const test::Heard& heard = node.heard();
  EXPECT_EQ(heard.hello->store, node_store());
  EXPECT_FALSE(heard.hello->runtime.empty());
  EXPECT_EQ(heard.hello->ports.size(), 2U);
  EXPECT_GT(heard.sent, 3U << 20U);

  node.link().start(rank(7, made, "wc -c </data; echo err >&2; exit 3"));
  ASSERT_TRUE(node.until([&] { return heard.ended.contains(7) || heard.lost; })) << words(node);
  const RankEnd& end = heard.ended.at(7);
  EXPECT_EQ(end.exit_code, 3U) << why(node, 7);
  EXPECT_TRUE(heard.started.contains(7));
  EXPECT_NE(heard.output.at(7).find("3145728\n"), std::string::npos) << heard.output.at(7);
  EXPECT_NE(heard.output.at(7).find("err\n"), std::string::npos) << heard.output.at(7);
  const RunRecord record = parse_run(end.record, "it");
  EXPECT_EQ(record.start.id, heard.started.at(7));
  EXPECT_EQ(record.end->exit_code, 3U);
  EXPECT_EQ(record.start.image.digest, made.digest().str());

  node.link().bye();
  ASSERT_TRUE(node.until([&] { return heard.lost.has_value(); }));
  EXPECT_EQ(node.end(), (Exit{0, false}));
  EXPECT_TRUE(Store{node_store()}.verify(false, [](std::string_view) {}).empty());
  EXPECT_TRUE(list_folder(node_store() / "tmp").empty());
}

TEST_F(AgentTest, NothingIsSentTwice) {
  const Image made = image();
  for (const bool first : {true, false}) {
    TestNode node{node_store()};
    make_ready(node, made);
    EXPECT_EQ(node.heard().sent > 0, first);
  }
}

TEST_F(AgentTest, AWrongByteIsRefused) {
  const Image made = image();
  const fs::path blob = *store_.path_of(made.layers.at(0).blob.digest);
  {
    const Fd fd = open_file(blob, O_RDWR);
    ASSERT_EQ(::pwrite(fd.get(), "?", 1, 40), 1);
  }
  TestNode node{node_store()};
  node.link().meet("job-1", 0);
  node.link().send_image(store_, made.digest().str());
  ASSERT_TRUE(node.until([&] { return trouble(node); }));
  ASSERT_EQ(node.heard().failed.size(), 1U) << words(node);
  EXPECT_TRUE(node.heard().failed[0].starts_with("image: digest-mismatch: ")) << words(node);
  node.link().bye();
  ASSERT_TRUE(node.until([&] { return node.heard().lost.has_value(); }));
  Store store{node_store()};
  EXPECT_FALSE(store.has(made.layers.at(0).blob.digest));
  EXPECT_TRUE(store.verify(false, [](std::string_view) {}).empty());
}

TEST_F(AgentTest, SignalsStopsAndKillsReachARank) {
  const Image made = image();
  TestNode node{node_store()};
  make_ready(node, made);
  const test::Heard& heard = node.heard();
  node.link().start(rank(0, made, "trap 'exit 9' USR1; echo up; while :; do sleep 0.1; done"));
  node.link().start(rank(1, made, "trap 'exit 8' TERM; echo up; while :; do sleep 0.1; done"));
  node.link().start(rank(2, made, "trap '' TERM; echo up; while :; do sleep 0.1; done"));
  const auto up = [&](std::uint64_t one) {
    return heard.output.contains(one) && heard.output.at(one).find("up") != std::string::npos;
  };
  ASSERT_TRUE(node.until([&] { return up(0) && up(1) && up(2); })) << why(node, 0);
  node.link().signal(0, SIGUSR1);
  node.link().stop(1, milliseconds(20000));
  node.link().stop(2, milliseconds(100));
  ASSERT_TRUE(node.until([&] { return heard.ended.size() == 3; }));
  EXPECT_EQ(heard.ended.at(0).exit_code, 9U);
  EXPECT_EQ(heard.ended.at(1).exit_code, 8U);
  EXPECT_EQ(heard.ended.at(2).signal, std::uint64_t{SIGKILL});
}

TEST_F(AgentTest, ARankThatCannotStartSaysWhy) {
  const Image made = image();
  TestNode node{node_store()};
  make_ready(node, made);
  RankStart other = rank(1, made, "true");
  other.record.image.digest = Digest::of(std::string_view("x")).str();
  RankStart without_code = rank(2, made, "true");
  without_code.code_as_project = true;
  RankStart absent = rank(3, made, "true");
  absent.run.argv = {"no-such-program"};
  RankStart no_runtime = rank(4, made, "true");
  no_runtime.run.runtime = "/nowhere/runc";
  RankStart no_source = rank(5, made, "true");
  no_source.run.mounts.push_back({"/nowhere/data", "/data", true});
  for (const RankStart& one : {other, without_code, absent, no_runtime, no_source}) {
    node.link().start(one);
  }
  ASSERT_TRUE(node.until([&] { return node.heard().ended.size() == 5; }));
  EXPECT_EQ(node.heard().ended.at(5).failure->code, "bad-mount");
  EXPECT_TRUE(why(node, 5).starts_with("`/nowhere/data` is not there on node `")) << why(node, 5);
  EXPECT_EQ(node.heard().ended.at(1).failure->code, "absent");
  EXPECT_EQ(node.heard().ended.at(2).failure->code, "absent");
  EXPECT_EQ(node.heard().ended.at(3).exit_code, 127U);
  EXPECT_EQ(node.heard().ended.at(4).failure->code, "no-runtime");
}

/// A process that only this test has, by a name in its environment.
bool is_running(const std::string& mark) {
  for (const fs::path& process : list_folder("/proc")) {
    try {
      const auto text = read_file_if_exists(process / "environ");
      if (text && text->find(mark) != std::string::npos) return true;
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): somebody else's, or gone
    }
  }
  return false;
}

/// Until the condition holds; false when it does not.
bool comes_soon(const std::function<bool()>& condition) {
  constexpr int kPause = 50;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    (void)::poll(nullptr, 0, kPause);
  }
  return true;
}

TEST(NodeProgram, ThatIsNotInstalledIsTold) {
  // Nothing lies beside the tests.
  EXPECT_EQ(code_of([] { (void)node_program(); }), "no-node-program");
  EXPECT_EQ(code_of([] { (void)probe_program(); }), "no-probe-program");
}

class AgentEndTest : public AgentTest {
 protected:
  /// A node with a rank that would not end, which `end` ends; nothing of it stays.
  void leaves_nothing(const std::function<void(TestNode&)>& end) {
    const Image made = image();
    TestNode node{node_store(), {milliseconds(200), milliseconds(1500)}};
    make_ready(node, made);
    RankStart start = rank(0, made, "trap '' TERM HUP INT; echo up; while :; do sleep 0.1; done");
    const std::string mark = "MLENV_TEST_MARK=" + folder_.path().string();
    start.run.env = {mark};
    node.link().start(start);
    ASSERT_TRUE(node.until([&] { return node.heard().output.contains(0); })) << words(node);
    ASSERT_TRUE(is_running(mark));
    end(node);
    ASSERT_TRUE(node.end().has_value());
    EXPECT_TRUE(comes_soon([&] { return !is_running(mark); }));
    EXPECT_TRUE(comes_soon([&] {
      const Store sweeping{node_store()};
      return list_folder(node_store() / "tmp").empty();
    }));
  }
};

TEST_F(AgentEndTest, ByGoodBye) {
  leaves_nothing([](TestNode& node) {
    node.link().bye();
    EXPECT_TRUE(node.until([&] { return node.heard().lost.has_value(); }));
  });
}
TEST_F(AgentEndTest, ByTheControllersEnd) {
  leaves_nothing([](TestNode& node) { node.drop_link(); });
}
TEST_F(AgentEndTest, ByTheControllersSilence) {
  // Nothing is said, and nothing is closed.
  leaves_nothing([](TestNode& node) { EXPECT_TRUE(node.end().has_value()); });
}
TEST_F(AgentEndTest, ByASignal) {
  leaves_nothing([](TestNode& node) {
    ::kill(node.pid(), SIGTERM);
    EXPECT_TRUE(node.until([&] { return node.heard().lost.has_value(); }));
    EXPECT_EQ(node.heard().lost, "its agent was ended by SIGTERM");
    EXPECT_EQ(node.heard().ended.at(0).ended_by_node, "its agent was ended by SIGTERM");
  });
}

TEST_F(AgentTest, ARankThatItsNodeEndedDidNotEndWell) {
  const Image made = image();
  TestNode node{node_store()};
  make_ready(node, made);
  const test::Heard& heard = node.heard();
  node.link().start(rank(0, made, "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"));
  node.link().start(rank(1, made, "exit 0"));
  ASSERT_TRUE(node.until([&] { return heard.output.contains(0) && heard.ended.contains(1); }));
  EXPECT_EQ(heard.ended.at(1).ended_by_node, "");
  ::kill(node.pid(), SIGINT);
  ASSERT_TRUE(node.until([&] { return heard.lost.has_value(); }));
  ASSERT_TRUE(heard.ended.contains(0));
  EXPECT_EQ(heard.ended.at(0).exit_code, 0U);
  EXPECT_EQ(heard.ended.at(0).ended_by_node, "its agent was ended by SIGINT");
}

TEST_F(AgentTest, AControllerThatIsSilentIsToldWhenItListensAgain) {
  const Image made = image();
  TestNode node{node_store(), {milliseconds(200), milliseconds(1000)}};
  make_ready(node, made);
  ASSERT_TRUE(node.end().has_value());  // nothing is said meanwhile
  ASSERT_TRUE(node.until([&] { return node.heard().lost.has_value(); }));
  EXPECT_EQ(node.heard().lost, "nothing was heard of mlenv for 1 s");
}
TEST_F(AgentEndTest, ByForce) {
  leaves_nothing([](TestNode& node) { node.kill(); });
}

TEST_F(AgentTest, ASilentNodeIsLost) {
  TestNode node{node_store(), {milliseconds(100), milliseconds(500)}};
  node.link().meet("job-1", 0);
  ASSERT_TRUE(node.until([&] { return node.heard().hello.has_value(); }));
  ::kill(node.pid(), SIGSTOP);
  ASSERT_TRUE(node.until([&] { return node.heard().lost.has_value(); }));
  EXPECT_TRUE(node.heard().lost->starts_with("nothing was heard of it for ")) << words(node);
}

TEST_F(AgentTest, WhatIsNoAgentIsShown) {
  TestNode node{node_store(), {}, {"/bin/sh", "-c", "echo 'sh: mlenv-node: not found'"}};
  node.link().meet("job-1", 0);
  ASSERT_TRUE(node.until([&] { return node.heard().lost.has_value(); }));
  EXPECT_EQ(node.heard().lost,
            "no mlenv agent was started there: it wrote `sh: mlenv-node: not found`");
}

TEST_F(AgentTest, AStoreThatCannotBeMadeIsTold) {
  write_file(folder_.path() / "file", "", false);
  TestNode node{folder_.path() / "file/store"};
  ASSERT_TRUE(node.until([&] { return node.heard().lost.has_value(); }));
  EXPECT_NE(node.heard().lost->find("file"), std::string::npos) << words(node);
  EXPECT_EQ(node.end(), (Exit{1, false}));
}

TEST_F(AgentTest, MuchOutputIsBounded) {
  const Image made = image();
  TestNode node{node_store()};
  make_ready(node, made);
  RankStart start =
      rank(0, made, "head -c 50000000 /dev/zero | tr '\\0' x | fold -w 999; echo last");
  start.most_log_bytes = 1 << 20;
  node.link().start(start);
  const auto ended = [&] { return node.heard().ended.contains(0); };
  ASSERT_TRUE(node.until([&] { return ended() || trouble(node); }, std::chrono::minutes{5}));
  ASSERT_TRUE(ended()) << words(node);
  EXPECT_TRUE(node.heard().output.at(0).ends_with("last\n"));
}

TEST_F(AgentTest, TheJobsCodeIsUnpackedAndGoesWithTheJob) {
  const Image made = image();
  const Digest archive = store_.put(test_tar(
      {test_folder("src"), test_file("src/.wh.a", "one"), test_symlink("link", "src/.wh.a")}));
  TestNode node{node_store()};
  make_ready(node, made);
  node.link().send_code(store_, archive.str());
  ASSERT_TRUE(node.until([&] { return !node.heard().code.empty() || trouble(node); }));
  EXPECT_EQ(node.heard().code, archive.str()) << words(node);
  RankStart start = rank(0, made, "cat link; echo new >new; cat new; pwd");
  start.code_as_project = true;
  node.link().start(start);
  ASSERT_TRUE(node.until([&] { return node.heard().ended.contains(0); }));
  EXPECT_EQ(node.heard().output.at(0), "onenew\n/workspace\n") << why(node, 0);
  node.link().bye();
  ASSERT_TRUE(node.until([&] { return node.heard().lost.has_value(); }));
  EXPECT_TRUE(list_folder(node_store() / "tmp").empty());
}

TEST_F(AgentTest, CodeThatLeadsOutIsRefused) {
  TestNode node{node_store()};
  node.link().meet("job-1", 0);
  const std::vector<std::vector<TestEntry>> bad = {
      {test_symlink("a/b", "../../x")},
      {test_symlink("a", "/etc")},
      {test_file("../x", "y")},
      {test_file("a", "x"), test_hardlink("b", "a")},
  };
  for (const auto& entries : bad) {
    node.link().send_code(store_, store_.put(test_tar(entries)).str());
    const std::size_t before = node.heard().failed.size();
    ASSERT_TRUE(node.until([&] { return node.heard().failed.size() > before; })) << words(node);
    const std::string& said = node.heard().failed.back();
    EXPECT_TRUE(said.starts_with("code: bad-")) << said;
  }
}

TEST_F(AgentTest, FactsAndPortsAreToldWhenAsked) {
  TestNode node{node_store()};
  node.link().meet("job-1", 0);
  node.link().ask_facts();
  node.link().ask_ports(5);
  ASSERT_TRUE(node.until([&] { return node.heard().facts && node.heard().ports.size() == 5; }));
  EXPECT_TRUE(node.heard().facts->system.kernel);
}

}  // namespace
}  // namespace mlenv::job
