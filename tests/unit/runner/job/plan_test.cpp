#include "runner/job/plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

/// Nodes `n0`, `n1`, … at 10.9.0.1, …, with the ports that the job needs.
std::vector<Place> places_for(const Job& job, std::size_t nodes) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < nodes; ++i) {
    Place place{"n" + std::to_string(i), "10.9.0." + std::to_string(i + 1), "eth0", {}, 0, {}};
    for (std::size_t port = 0; port < ports_needed(job); ++port) {
      place.ports.push_back(static_cast<std::uint16_t>(20000 + 100 * i + port));
    }
    places.push_back(place);
  }
  return places;
}

JobPlan plan_of(const Job& job, std::size_t nodes, std::uint64_t attempt = 0) {
  return plan(job, places_for(job, nodes), "0badcafe", attempt);
}

std::map<std::string, std::string> env_of(const Rank& rank) {
  std::map<std::string, std::string> env;
  for (const std::string& one : rank.env) {
    const std::size_t equals = one.find('=');
    EXPECT_TRUE(env.emplace(one.substr(0, equals), one.substr(equals + 1)).second) << one;
  }
  return env;
}

json tf_config(const Rank& rank) { return json::parse(env_of(rank).at("TF_CONFIG")); }

std::string roles(const JobPlan& plan) {
  std::string all;
  for (const Rank& rank : plan.ranks) {
    all += (all.empty() ? "" : " ") + rank.role + std::to_string(rank.role_index);
  }
  return all;
}

Job servers(std::uint64_t servers, std::uint64_t per_node = 1) {
  Job job;
  job.strategy = Strategy::parameter_server;
  job.framework = Framework::tensorflow;
  job.ranks_per_node = per_node;
  job.roles.servers = servers;
  return job;
}

TEST(PlanTest, WhatEachRankIsTold) {
  Job job;
  job.ranks_per_node = 2;
  job.checkpoints = Mount{"/shared/ck", "/ck"};
  const JobPlan made = plan_of(job, 2, 3);
  ASSERT_EQ(made.ranks.size(), 4U);
  EXPECT_EQ(made.ranks[2].node, 1U);
  EXPECT_EQ(made.ranks[2].local_rank, 0U);
  const std::vector<std::string> expected = {"GLOO_SOCKET_IFNAME=eth0",
                                             "GROUP_RANK=1",
                                             "LOCAL_RANK=1",
                                             "LOCAL_WORLD_SIZE=2",
                                             "MASTER_ADDR=10.9.0.1",
                                             "MASTER_PORT=20000",
                                             "MLENV_CHECKPOINTS=/ck",
                                             "MLENV_JOB=0badcafe",
                                             "MLENV_NODE=1",
                                             "MLENV_NODES=2",
                                             "MLENV_NODE_NAME=n1",
                                             "MLENV_RESTARTS=3",
                                             "MLENV_ROLE=worker",
                                             "MLENV_SHARD=3",
                                             "MLENV_SHARDS=4",
                                             "NCCL_SOCKET_IFNAME==eth0",
                                             "NODE_RANK=1",
                                             "RANK=3",
                                             "WORLD_SIZE=4"};
  EXPECT_EQ(made.ranks[3].env, expected);
}

TEST(PlanTest, PlainSaysNothingOfAFramework) {
  for (const Framework framework :
       {Framework::torch, Framework::jax, Framework::tensorflow, Framework::mpi}) {
    Job job;
    job.framework = framework;
    EXPECT_EQ(plan_of(job, 2).ranks[1].env, plan_of(Job{}, 2).ranks[1].env);
    EXPECT_EQ(ports_needed(job), 1U);
  }
}

TEST(PlanTest, TorchIsToldWhatTorchrunTells) {
  Job job;
  job.strategy = Strategy::allreduce;
  job.framework = Framework::torch;
  job.ranks_per_node = 2;
  job.restarts = 5;
  auto env = env_of(plan_of(job, 3, 1).ranks[5]);
  const std::map<std::string, std::string> expected = {{"GROUP_WORLD_SIZE", "3"},
                                                       {"ROLE_NAME", "worker"},
                                                       {"ROLE_RANK", "5"},
                                                       {"ROLE_WORLD_SIZE", "6"},
                                                       {"TORCHELASTIC_RUN_ID", "0badcafe"},
                                                       {"TORCHELASTIC_RESTART_COUNT", "1"},
                                                       {"TORCHELASTIC_MAX_RESTARTS", "5"},
                                                       {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                                       {"TP_SOCKET_IFNAME", "eth0"},
                                                       {"CROSS_RANK", "2"},
                                                       {"CROSS_SIZE", "3"},
                                                       {"LOCAL_SIZE", "2"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(env[name], value) << name;
}

TEST(PlanTest, JaxHasACoordinatorOfItsOwnPort) {
  Job job;
  job.strategy = Strategy::allreduce;
  job.framework = Framework::jax;
  ASSERT_EQ(ports_needed(job), 2U);
  auto env = env_of(plan_of(job, 2).ranks[1]);
  EXPECT_EQ(env["JAX_COORDINATOR_ADDRESS"], "10.9.0.1:20001");
  EXPECT_EQ(env["MASTER_PORT"], "20000");
  EXPECT_EQ(env["SLURM_NTASKS"], "2");
  EXPECT_EQ(env["SLURM_PROCID"], "1");
  EXPECT_EQ(env["SLURM_LOCALID"], "0");
  EXPECT_EQ(env["JAX_PROCESS_ID"], "1");
  EXPECT_EQ(env.count("JAX_LOCAL_DEVICE_IDS"), 0U);
}

TEST(PlanTest, EachRankHasItsShareOfTheGpus) {
  Job job;
  job.strategy = Strategy::allreduce;
  const auto own = [&](Framework framework, std::uint64_t gpus, std::uint64_t ranks,
                       std::size_t rank) {
    job.framework = framework;
    job.ranks_per_node = ranks;
    std::vector<Place> places = places_for(job, 1);
    places[0].gpus = gpus;
    auto env = env_of(plan(job, places, "j", 0).ranks[rank]);
    return env[framework == Framework::jax ? "JAX_LOCAL_DEVICE_IDS" : "CUDA_VISIBLE_DEVICES"];
  };
  EXPECT_EQ(own(Framework::jax, 8, 1, 0), "0,1,2,3,4,5,6,7");
  EXPECT_EQ(own(Framework::jax, 8, 2, 1), "4,5,6,7");
  EXPECT_EQ(own(Framework::jax, 2, 4, 3), "1");
  EXPECT_EQ(own(Framework::tensorflow, 8, 1, 0), "");  // it takes all that it sees
  EXPECT_EQ(own(Framework::tensorflow, 8, 4, 3), "6,7");
  EXPECT_EQ(own(Framework::torch, 8, 4, 3), "");  // torch.cuda.set_device(LOCAL_RANK)
}

TEST(PlanTest, TensorFlowsWorkersAreOneCluster) {
  Job job;
  job.strategy = Strategy::allreduce;
  job.framework = Framework::tensorflow;
  job.ranks_per_node = 2;
  const JobPlan made = plan_of(job, 2);
  EXPECT_EQ(tf_config(made.ranks[2]),
            json::parse(R"({"cluster": {"worker": ["10.9.0.1:20001", "10.9.0.1:20002",
                                                   "10.9.0.2:20101", "10.9.0.2:20102"]},
                            "task": {"type": "worker", "index": 2}})"));
}

TEST(PlanTest, ParameterServersAreSpreadOverTheNodes) {
  EXPECT_EQ(roles(plan_of(servers(1), 3)), "chief0 worker0 ps0");
  EXPECT_EQ(roles(plan_of(servers(2), 4)), "chief0 worker0 ps0 ps1");
  EXPECT_EQ(roles(plan_of(servers(2, 3), 2)), "chief0 worker0 ps0 worker1 worker2 ps1");
  Job all = servers(2, 3);
  all.roles.evaluator = true;
  EXPECT_EQ(roles(plan_of(all, 2)), "chief0 worker0 ps0 worker1 ps1 evaluator0");
  all.roles.chief = false;
  EXPECT_EQ(roles(plan_of(all, 2)), "worker0 worker1 ps0 worker2 ps1 evaluator0");
}

TEST(PlanTest, AnEvaluatorIsNotInTheCluster) {
  Job job = servers(1);
  job.roles.evaluator = true;
  const JobPlan made = plan_of(job, 4);
  ASSERT_EQ(roles(made), "chief0 worker0 ps0 evaluator0");
  const json config = tf_config(made.ranks[3]);
  EXPECT_EQ(config["cluster"], json::parse(R"({"chief": ["10.9.0.1:20001"],
                                               "worker": ["10.9.0.2:20101"],
                                               "ps": ["10.9.0.3:20201"]})"));
  EXPECT_EQ(config["task"], json::parse(R"({"type": "evaluator", "index": 0})"));
}

TEST(PlanTest, ShardsAreOfThoseWhoReadData) {
  const JobPlan made = plan_of(servers(1, 2), 2);
  ASSERT_EQ(roles(made), "chief0 worker0 worker1 ps0");
  EXPECT_EQ(env_of(made.ranks[0]).count("MLENV_SHARD"), 0U);
  EXPECT_EQ(env_of(made.ranks[2])["MLENV_SHARD"], "1");
  EXPECT_EQ(env_of(made.ranks[2])["MLENV_SHARDS"], "2");
  EXPECT_EQ(env_of(made.ranks[3]).count("MLENV_SHARD"), 0U);
}

TEST(PlanTest, AddressesOfIpv6AreInBracketsWhereAPortFollows) {
  Job job;
  job.strategy = Strategy::allreduce;
  job.framework = Framework::jax;
  std::vector<Place> places = places_for(job, 1);
  places[0].address = "fd00::1";
  auto env = env_of(plan(job, places, "j", 0).ranks[0]);
  EXPECT_EQ(env["MASTER_ADDR"], "fd00::1");
  EXPECT_EQ(env["JAX_COORDINATOR_ADDRESS"], "[fd00::1]:20001");
}

TEST(PlanTest, RolesThatDoNotFit) {
  for (const auto& [job, nodes] :
       {std::pair{servers(1), std::size_t{2}}, std::pair{servers(3), std::size_t{4}},
        std::pair{servers(~std::uint64_t{0}), std::size_t{4}}}) {
    const Error error = error_of([job = job, nodes = nodes] { (void)plan_of(job, nodes); });
    EXPECT_EQ(error.code(), "bad-job");
    EXPECT_EQ(error.kind(), Kind::usage);
  }
  EXPECT_STREQ(error_of([] { (void)plan_of(servers(2), 3); }).what(),
               "a chief, 2 parameter servers and at least one worker do not fit in 3 ranks");
}

TEST(PlanTest, ALoopbackLeadsToNoOtherNode) {
  const auto with = [](std::size_t nodes, const char* interface, const char* address) {
    std::vector<Place> places = places_for(Job{}, nodes);
    places.back().interface = interface;
    places.back().address = address;
    return code_of([&] { (void)plan(Job{}, places, "j", 0); });
  };
  EXPECT_EQ(with(2, "lo", "127.0.0.1"), "bad-job");
  EXPECT_EQ(with(2, "eth0", "127.0.1.1"), "bad-job");
  EXPECT_EQ(with(2, "dummy0", "::1"), "bad-job");
  EXPECT_EQ(with(2, "", "10.9.0.9"), "no-interface");
  EXPECT_EQ(with(2, "eth0", "10.9.0.1"), "bad-job");  // the first node's
  EXPECT_EQ(with(1, "lo", "127.0.0.1"), "none");
  EXPECT_EQ(with(1, "", "127.0.0.1"), "none");
}

// What must hold of any job: all strategies, frameworks and sizes together.
class AnyPlanTest : public testing::TestWithParam<std::tuple<Strategy, Framework>> {
 protected:
  static void check(const Job& job, std::size_t nodes) {
    const std::vector<Place> places = places_for(job, nodes);
    const JobPlan made = plan(job, places, "j", 1);
    ASSERT_EQ(made.ranks.size(), nodes * job.ranks_per_node);
    std::set<std::pair<std::uint64_t, std::uint64_t>> seats;
    std::set<std::string> shards;
    std::map<std::string, std::set<std::uint64_t>> indices;
    for (std::size_t i = 0; i < made.ranks.size(); ++i) {
      const Rank& rank = made.ranks[i];
      EXPECT_EQ(rank.rank, i);
      EXPECT_EQ(rank.node * job.ranks_per_node + rank.local_rank, i);
      EXPECT_TRUE(seats.emplace(rank.node, rank.local_rank).second);
      EXPECT_TRUE(indices[rank.role].insert(rank.role_index).second);
      EXPECT_TRUE(std::is_sorted(rank.env.begin(), rank.env.end()));
      auto env = env_of(rank);
      EXPECT_EQ(env["RANK"], std::to_string(i));
      EXPECT_EQ(env["MASTER_PORT"], std::to_string(places[0].ports[0]));
      if (env.contains("MLENV_SHARD")) {
        EXPECT_TRUE(shards.insert(env["MLENV_SHARD"]).second);
      }
    }
    for (const auto& [role, of] : indices) EXPECT_EQ(*of.rbegin() + 1, of.size()) << role;
    EXPECT_EQ(shards.size(), indices["worker"].size());
    check_ports(made);
    const JobPlan again = plan(job, places, "j", 1);
    for (std::size_t i = 0; i < made.ranks.size(); ++i) {
      EXPECT_EQ(made.ranks[i].env, again.ranks[i].env);
    }
  }

  static void check_or_refuse(const Job& job, std::size_t nodes, std::uint64_t needed) {
    if (needed > nodes * job.ranks_per_node) {
      EXPECT_EQ(code_of([&] { (void)plan_of(job, nodes); }), "bad-job");
    } else {
      check(job, nodes);
    }
  }

 private:
  /// Nothing listens where another does.
  static void check_ports(const JobPlan& made) {
    std::set<std::string> taken;
    auto first = env_of(made.ranks[0]);
    taken.insert(first["MASTER_ADDR"] + ":" + first["MASTER_PORT"]);
    if (first.contains("JAX_COORDINATOR_ADDRESS")) {
      EXPECT_TRUE(taken.insert(first["JAX_COORDINATOR_ADDRESS"]).second);
    }
    if (!first.contains("TF_CONFIG")) return;
    const json cluster = tf_config(made.ranks[0])["cluster"];
    for (const auto& role : cluster) {
      for (const auto& address : role) {
        EXPECT_TRUE(taken.insert(address.get<std::string>()).second) << address;
      }
    }
    for (const Rank& rank : made.ranks) {
      const json config = tf_config(rank);
      EXPECT_EQ(config["cluster"], cluster);
      if (rank.role == "evaluator") continue;
      const std::string own = config["cluster"][rank.role].at(rank.role_index);
      EXPECT_TRUE(own.starts_with("10.9.0." + std::to_string(rank.node + 1) + ":")) << own;
    }
  }
};

/// With and without a chief and an evaluator, none to two servers.
std::vector<ServerRoles> all_roles() {
  std::vector<ServerRoles> all;
  for (unsigned i = 0; i < 12U; ++i) all.push_back({(i & 1U) != 0, i / 4, (i & 2U) != 0});
  return all;
}

std::uint64_t ranks_needed(const ServerRoles& roles) {
  return roles.servers + (roles.chief ? 1 : 0) + (roles.evaluator ? 1 : 0) + 1;
}

TEST_P(AnyPlanTest, EveryRankOnceEveryPortOnce) {
  Job job;
  std::tie(job.strategy, job.framework) = GetParam();
  const bool has_roles = job.strategy == Strategy::parameter_server;
  const std::vector<ServerRoles> roles =
      has_roles ? all_roles() : std::vector<ServerRoles>{{false, 0, false}};
  for (const ServerRoles& one : roles) {
    job.roles = one;
    const std::uint64_t needed = has_roles ? ranks_needed(one) : 1;
    for (unsigned seats = 0; seats < 6U; ++seats) {
      const std::size_t nodes = 1 + seats / 2;
      job.ranks_per_node = seats % 2 == 0 ? 1 : 3;
      check_or_refuse(job, nodes, needed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AnyPlanTest,
                         testing::Combine(testing::Values(Strategy::plain, Strategy::allreduce,
                                                          Strategy::parameter_server),
                                          testing::Values(Framework::none, Framework::torch,
                                                          Framework::jax, Framework::tensorflow,
                                                          Framework::mpi)));

TEST(PlanTest, NamesOfTheNodesForEtcHosts) {
  std::vector<Place> places = places_for(Job{}, 2);
  places[1].host = "node17";
  EXPECT_EQ(etc_hosts_of(places),
            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
            "10.9.0.1 n0\n10.9.0.2 n1 node17\n");
}

}  // namespace
}  // namespace mlenv::job
