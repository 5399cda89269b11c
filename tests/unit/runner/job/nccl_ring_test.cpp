#include "runner/job/nccl_ring.hpp"

#include <gtest/gtest.h>

#include "runner/record/run_log.hpp"

namespace mlenv::job {
namespace {

constexpr double kGiga = 1e9;
const std::vector<std::string> kNames = {"n1", "n2"};

Preflight two_nodes(double gigabits, std::optional<double> ports = std::nullopt) {
  Preflight found;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    PreflightNode& node = found.nodes.emplace_back();
    node.name = kNames[i];
    node.boot_id = "boot-" + kNames[i];
    if (ports) node.rdma_bits_per_second = *ports * kGiga;
  }
  found.links = links_of(kNames.size());
  for (PreflightLink& link : found.links) link.bits_per_second = gigabits * kGiga;
  return found;
}

std::string log_line(const std::string& text, bool ends = true) {
  std::string line = render_log_line({"2026-03-01T12:00:00.250Z", LogStream::out, ends, text});
  line.pop_back();  // the newline
  return line;
}

std::string probe_answer(const std::string& verdict, const std::string& nccl,
                         const std::string& reason = "null") {
  return R"({"schema":"mlenv.gpu-probe/1","verdict":")" + verdict + R"(","reason":)" + reason +
         R"(,"nccl":)" + nccl + "}";
}

std::string sums(const std::string& each) {
  return R"({"library":"/l","version":"2.28.3","ranks":4,"bytes":1000000,"sums_right":true,)"
         R"("problem":null,"each_seconds":)" +
         each + "}";
}

TEST(NcclRing, IsAsLongAsItsSlowestNodeSaysAndTheShortestOfAFew) {
  NcclLines lines{2};
  lines.line(0, log_line("n1:7:7 [0] NCCL INFO Using network IB"));
  const std::string text = probe_answer("works", sums("[0.5,0.001,0.3]"));
  lines.line(0, log_line(text.substr(0, 20), false));  // a line in two pieces
  lines.line(0, log_line(text.substr(20)));
  lines.line(1, log_line(probe_answer("works", sums("[0.1,0.2,0.4]"))));
  lines.line(7, log_line("nobody"));
  const PreflightNccl found = lines.result(kNames, "");
  EXPECT_EQ(found.problem, "");
  EXPECT_FALSE(found.failed);
  EXPECT_EQ(found.network, "IB");
  EXPECT_EQ(found.gpus, 4U);
  EXPECT_DOUBLE_EQ(found.seconds.value_or(0), 0.2);
  EXPECT_DOUBLE_EQ(found.bus_bits_per_second.value_or(0), 1.5 * 8e6 / 0.2);
}

TEST(NcclRing, SaysWhatFailedAndWhatIsNotThere) {
  NcclLines none{2};
  none.line(1, log_line(probe_answer("no-gpu", "null", R"("the driver has no GPU")")));
  PreflightNccl found = none.result(kNames, "n2: the probe ended with status 3");
  EXPECT_FALSE(found.failed);
  EXPECT_EQ(found.problem, "n2: the driver has no GPU");

  NcclLines without{2};
  without.line(0, log_line(probe_answer("fails", R"({"library":null})", R"("NCCL: no library")")));
  EXPECT_FALSE(without.result(kNames, "n1: the probe ended with status 3").failed);

  NcclLines broken{2};
  broken.line(
      0, log_line(probe_answer("fails", R"({"library":"/l"})", R"-("NCCL: system error (2)")-")));
  found = broken.result(kNames, "n1: the probe ended with status 3");
  EXPECT_TRUE(found.failed);
  EXPECT_EQ(found.problem, "n1: NCCL: system error (2)");

  NcclLines silent{2};  // its C library is too old for the program
  silent.line(1, log_line("./mlenv-gpu-probe: version `GLIBC_2.36' not found"));
  found = silent.result(kNames, "n2: the probe ended with status 1");
  EXPECT_TRUE(found.failed);
  EXPECT_EQ(found.problem, "n2: ./mlenv-gpu-probe: version `GLIBC_2.36' not found");

  NcclLines half{2};
  half.line(0, log_line(probe_answer("works", sums("[0.1]"))));
  half.line(1, log_line("[1,2"));
  EXPECT_TRUE(half.result(kNames, "").failed);
  EXPECT_EQ(NcclLines{2}.result(kNames, "node n2 was lost: silent").problem,
            "node n2 was lost: silent");
}

PreflightNccl measured(double gigabits, const std::string& network) {
  PreflightNccl nccl;
  nccl.version = "2.28.3";
  nccl.network = network;
  nccl.gpus = 4;
  nccl.bytes = 1 << 20;
  nccl.seconds = 0.1;
  nccl.bus_bits_per_second = gigabits * kGiga;
  return nccl;
}

/// `STANDING: TEXT` of what was found, and the verdict.
std::string judged(Preflight found, PreflightNccl nccl) {
  add_nccl(found, std::move(nccl));
  std::string text = found.verdict;
  for (const PreflightFinding& one : found.findings) {
    EXPECT_EQ(one.kind, "nccl");
    text += "; " + one.standing + ": " + one.text;
  }
  return text;
}

TEST(NcclRing, IsJudgedByWhatTheNetworkItUsesCanCarry) {
  EXPECT_EQ(judged(two_nodes(9), measured(7, "Socket")), "fine");
  EXPECT_EQ(judged(two_nodes(9), measured(4, "Socket")),
            "slow; slow: NCCL's all-reduce gets 4.0 Gbit/s; expected 9.0 Gbit/s");
  EXPECT_EQ(judged(two_nodes(9, 400), measured(350, "IB")), "fine");
  EXPECT_EQ(judged(two_nodes(9, 400), measured(100, "IB")),
            "slow; slow: NCCL's all-reduce gets 100.0 Gbit/s; expected 400.0 Gbit/s");
  EXPECT_EQ(judged(two_nodes(9, 400), measured(8, "Socket")),
            "slow; slow: NCCL goes by sockets, and the nodes have InfiniBand: `--rdma` gives it to "
            "the ranks");
  EXPECT_EQ(judged(two_nodes(9), not_measured("none")), "fine");
  Preflight one_machine = two_nodes(9);
  one_machine.nodes[1].boot_id = one_machine.nodes[0].boot_id;
  EXPECT_EQ(judged(one_machine, measured(1, "Socket")), "fine");
  PreflightNccl failed = not_measured("n1: system error");
  failed.failed = true;
  EXPECT_EQ(judged(two_nodes(9), failed),
            "broken; broken: NCCL's all-reduce over the nodes' GPUs failed: n1: system error");
}

TEST(NcclRing, TakesAVectorThatTheSlowestLinkCarriesInTime) {
  EXPECT_EQ(nccl_words(two_nodes(0.001)).back(), "1");
  EXPECT_EQ(nccl_words(two_nodes(1)).back(), "32");
  EXPECT_EQ(nccl_words(two_nodes(100)).back(), "256");
  EXPECT_EQ(nccl_words(two_nodes(1, 200)).back(), "256");
  EXPECT_EQ(nccl_words({}).back(), "256");
}

}  // namespace
}  // namespace mlenv::job
