#include "runner/job/agreement.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runner/changes/changes.hpp"
#include "tests/support/corpus.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

/// A node of tests/verdicts/hosts.
NodeReport node_of(const std::string& host) {
  NodeReport node;
  node.name = host;
  const fs::path file = source_folder() / "tests/verdicts/hosts" / (host + ".json");
  node.facts = read_facts(read_file(file), host);
  node.hello.runtime = "/usr/bin/runc";
  node.hello.version = "0.1.0";
  node.clock_offset = -0.1;
  return node;
}

AgreementRow row_of(const Agreement& agreement, const std::string& rule) {
  for (const AgreementRow& row : agreement.rows) {
    if (row.rule == rule) return row;
  }
  ADD_FAILURE() << "no row " << rule;
  return {};
}

std::string standing(const Agreement& agreement, const std::string& rule) {
  return row_of(agreement, rule).standing;
}

Agreement agree(const std::string& a, const std::string& b, bool on_gpus = true) {
  Job job;
  job.gpus_per_node = 1;
  return agreement_of(job, {node_of(a), node_of(b)}, on_gpus);
}

TEST(AgreementTest, ANodeAgreesWithItself) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(source_folder() / "tests/verdicts/hosts")) {
    const std::string host = entry.path().stem().string();
    Job job;
    job.options.rdma = true;
    const NodeReport node = node_of(host);
    const Agreement agreement = agreement_of(job, {node, node}, true);
    // That a name leads to itself is no difference, and told all the same.
    const bool loopback = node.facts.network.host_is_loopback.value.value_or(false);
    EXPECT_EQ(agreement.differences(), loopback ? 1U : 0U) << host << render_agreement(agreement);
    EXPECT_EQ(agreement.blocking(), nullptr) << host;
    ++count;
  }
  EXPECT_GE(count, 90);
}

TEST(AgreementTest, DriversAndModels) {
  const Agreement agreement = agree("h100-535", "h100-580");
  const AgreementRow driver = row_of(agreement, "driver");
  EXPECT_EQ(driver.standing, "noted");
  EXPECT_TRUE(driver.values[0]->starts_with("535."));
  EXPECT_TRUE(driver.values[1]->starts_with("580."));
  EXPECT_EQ(driver.effect, changes::rule_of("driver").effect);
  EXPECT_EQ(standing(agreement, "architecture"), "same");
  EXPECT_EQ(agreement.rows.front().standing, "noted");  // differences come first
  EXPECT_EQ(standing(agree("v100-535", "a100-550"), "gpu-model"), "noted");
}

TEST(AgreementTest, WithoutGpusNobodyAsksForDrivers) {
  for (const AgreementRow& row : agree("h100-535", "cpu-node", false).rows) {
    EXPECT_NE(row.rule, "driver");
    EXPECT_NE(row.rule, "gpu-count");
  }
}

TEST(AgreementTest, NumbersOfGpus) {
  std::vector<NodeReport> nodes = {node_of("a100-550"), node_of("a100-550")};
  ASSERT_EQ(nodes[1].facts.gpus->size(), 8U);
  nodes[1].facts.gpus.value->resize(4);
  EXPECT_EQ(standing(agreement_of(Job{}, nodes, true), "gpu-count"), "blocked");
  Job job;
  job.gpus_per_node = 4;
  EXPECT_EQ(standing(agreement_of(job, nodes, true), "gpu-count"), "noted");
  job.gpus_per_node = 8;
  const Agreement agreement = agreement_of(job, nodes, true);
  ASSERT_NE(agreement.blocking(), nullptr);
  EXPECT_EQ(agreement.blocking()->rule, "gpu-count");
  EXPECT_EQ(agreement.blocking()->values, (decltype(AgreementRow::values){"8", "4"}));
}

TEST(AgreementTest, ANodeWithoutADriverBlocks) {
  std::vector<NodeReport> nodes = {node_of("h100-580"), node_of("h100-580")};
  nodes[0].facts.nvidia.kernel_driver = known(std::string("none"), "test");
  EXPECT_EQ(standing(agreement_of(Job{}, nodes, true), "driver"), "blocked");
}

TEST(AgreementTest, ArchitecturesBlock) {
  const Agreement agreement = agree("arm-server", "cpu-node", false);
  ASSERT_NE(agreement.blocking(), nullptr);
  EXPECT_EQ(agreement.rows.front().rule, "architecture");
}

TEST(AgreementTest, RuntimesDifferOrAreMissing) {
  std::vector<NodeReport> nodes = {node_of("cpu-node"), node_of("cpu-node")};
  nodes[1].hello.runtime = "/opt/bin/crun";
  EXPECT_EQ(standing(agreement_of(Job{}, nodes, false), "runtime"), "noted");
  nodes[1].hello.runtime = "/opt/bin/runc";
  EXPECT_EQ(standing(agreement_of(Job{}, nodes, false), "runtime"), "same");
  nodes[1].hello.runtime = "";
  EXPECT_EQ(standing(agreement_of(Job{}, nodes, false), "runtime"), "blocked");
}

TEST(AgreementTest, RdmaPortsMatterWhereRanksHaveThem) {
  std::vector<NodeReport> nodes = {node_of("h100-580"), node_of("h100-580")};
  RdmaPort port;
  port.device = "mlx5_0";
  port.state = known(std::string("ACTIVE"), "test");
  nodes[0].facts.network.rdma = known<std::vector<RdmaPort>>({port}, "test");
  nodes[1].facts.network.rdma = known<std::vector<RdmaPort>>({}, "test");
  Job job;
  for (const AgreementRow& row : agreement_of(job, nodes, true).rows) EXPECT_NE(row.rule, "rdma");
  job.options.rdma = true;
  EXPECT_EQ(standing(agreement_of(job, nodes, true), "rdma"), "blocked");
  nodes[1].facts.network.rdma.value->assign(2, port);
  EXPECT_EQ(standing(agreement_of(job, nodes, true), "rdma"), "noted");
}

TEST(AgreementTest, WhatIsNotKnownIsNoDifference) {
  std::vector<NodeReport> nodes = {node_of("h100-580"), node_of("h100-580")};
  nodes[0].facts.system.kernel = unknown<std::string>("uname: no");
  const Agreement agreement = agreement_of(Job{}, nodes, true);
  EXPECT_EQ(standing(agreement, "kernel"), "unknown");
  EXPECT_FALSE(row_of(agreement, "kernel").values[0]);
  EXPECT_EQ(agreement.differences(), 0U);
}

TEST(AgreementTest, ClocksApart) {
  const auto with = [](std::optional<double> first, std::optional<double> second) {
    std::vector<NodeReport> nodes = {node_of("cpu-node"), node_of("cpu-node")};
    nodes[0].clock_offset = first;
    nodes[1].clock_offset = second;
    return row_of(agreement_of(Job{}, nodes, false), "clock");
  };
  // How far the nodes are from each other counts, not how far from here.
  EXPECT_EQ(with(0, 2).standing, "same");
  EXPECT_EQ(with(-1.1, 1).standing, "noted");
  EXPECT_EQ(with(7200, 7200).standing, "same");
  EXPECT_EQ(with(0, 301).standing, "blocked");
  EXPECT_EQ(with(std::nullopt, 301).standing, "unknown");
  EXPECT_EQ(with(0.5, -0.1).values, (decltype(AgreementRow::values){"+0.5 s", "-0.1 s"}));
}

TEST(AgreementTest, WhatBlocksIsAnError) {
  EXPECT_NO_THROW(require_agreement(agree("cpu-node", "cpu-node")));
  std::vector<NodeReport> nodes = {node_of("cpu-node"), node_of("cpu-node"), node_of("cpu-node")};
  nodes[1].name = "n2";
  nodes[1].hello.runtime = "";
  const Error error = error_of([&] { require_agreement(agreement_of(Job{}, nodes, false)); });
  EXPECT_EQ(error.code(), "nodes-differ");
  EXPECT_EQ(error.kind(), Kind::no);
  EXPECT_EQ(error.frames().at(1), "runc on cpu-node, cpu-node; none on n2");
}

TEST(AgreementTest, AllThatBlocksIsToldAtOnce) {
  std::vector<NodeReport> nodes = {node_of("cpu-node"), node_of("cpu-node")};
  nodes[1].name = "n2";
  nodes[1].hello.runtime = "";
  nodes[1].clock_offset = 1000;
  const Error error = error_of([&] { require_agreement(agreement_of(Job{}, nodes, false)); });
  EXPECT_EQ(error.frames().size(), 5U) << error.what();
  EXPECT_NE(error.frames()[1].find("runc on cpu-node; none on n2"), std::string::npos)
      << error.frames()[1];
  EXPECT_NE(error.frames()[3].find("-0.1 s on cpu-node; +1000.0 s on n2"), std::string::npos)
      << error.frames()[3];
  EXPECT_NE(error.hint().find("install runc"), std::string::npos) << error.hint();
  EXPECT_NE(error.hint().find("chrony"), std::string::npos) << error.hint();
}

TEST(AgreementTest, OneTableOfAllThatDiffers) {
  EXPECT_TRUE(difference_table(agree("cpu-node", "cpu-node")).empty());
  std::vector<NodeReport> nodes = {node_of("h100-535"), node_of("h100-580")};
  nodes[1].hello.runtime = "";
  Job job;
  job.gpus_per_node = 1;
  const Agreement agreement = agreement_of(job, nodes, true);
  const std::vector<std::string> table = difference_table(agreement);
  ASSERT_EQ(table.size(), agreement.differences() + 1);
  EXPECT_EQ(table[0], "the nodes differ:");
  EXPECT_TRUE(table[1].starts_with("  blocks  ")) << table[1];
  EXPECT_NE(table[1].find("none on h100-580"), std::string::npos) << table[1];
  EXPECT_TRUE(table[2].starts_with("  notes   NVIDIA driver")) << table[2];
  EXPECT_NE(table[2].find("  535.247.01 on h100-535; 580."), std::string::npos) << table[2];
}

TEST(AgreementTest, IsReadBackAsItWasWritten) {
  const Agreement agreement = agree("h100-535", "h100-580");
  EXPECT_EQ(parse_agreement(render_agreement(agreement), "it"), agreement);
}

TEST(AgreementTest, NodesOfWhichNothingIsKnownAreLeftOut) {
  std::vector<NodeState> states(2);
  states[1].offer.name = "n2";
  states[1].hello = NodeHello{};
  states[1].facts = Facts{};
  states[1].clock_offset = 3;
  const std::vector<NodeReport> reports = reports_of(states);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].name, "n2");
  EXPECT_EQ(reports[0].clock_offset, 3);
}

TEST(AgreementTest, AHostWhoseNameLeadsToItself) {
  std::vector<NodeReport> nodes = {node_of("cpu-node"), node_of("cpu-node")};
  EXPECT_NE(standing(agreement_of(Job{}, nodes, false), "host-loopback"), "noted");
  for (NodeReport& node : nodes) {
    node.facts.network.host_is_loopback = known(true, "test");
    node.facts.network.host_addresses = known<std::vector<std::string>>({"127.0.1.1"}, "test");
  }
  const AgreementRow row = row_of(agreement_of(Job{}, nodes, false), "host-loopback");
  EXPECT_EQ(row.standing, "noted");  // although all nodes are alike in it
  EXPECT_EQ(row.values[1], "127.0.1.1");
}

TEST(AgreementTest, AsJson) {
  const auto json = nlohmann::json::parse(render_agreement(agree("h100-535", "h100-580")));
  EXPECT_EQ(json["schema"], "mlenv.agreement/1");
  EXPECT_EQ(json["nodes"], (std::vector<std::string>{"h100-535", "h100-580"}));
  EXPECT_EQ(json["rows"][0]["standing"], "noted");
}

}  // namespace
}  // namespace mlenv::job
