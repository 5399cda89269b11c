#include "runner/job/mpi.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "runner/job/job_status.hpp"
#include "runner/job/parts.hpp"

namespace mlenv::job {
namespace {

Job mpi_job() {
  Job job;
  job.strategy = Strategy::mpi;
  job.framework = Framework::mpi;
  job.ranks_per_node = 2;
  return job;
}

const std::vector<Place> kPlaces{{"n1", "10.9.0.1", "eth0", {20000, 20001}, 0, {}},
                                 {"n2", "10.9.0.2", "eth0", {20100, 20101}, 0, {}}};

std::string value_of(const Rank& rank, const std::string& name) {
  for (const std::string& one : rank.env) {
    if (one.starts_with(name + "=")) return one.substr(name.size() + 1);
  }
  return "(absent)";
}

TEST(MpiJob, AContainerOnEachNode) {
  const JobPlan made = plan(mpi_job(), kPlaces, "j", 0);
  ASSERT_EQ(made.ranks.size(), 2U);
  EXPECT_EQ(made.ranks[0].role, "mpi-launcher");
  EXPECT_EQ(made.ranks[1].role, "mpi-worker");
  EXPECT_EQ(made.ranks[1].node, 1U);
  EXPECT_TRUE(is_essential(made.ranks[0], mpi_job()));
  EXPECT_FALSE(is_essential(made.ranks[1], mpi_job()));
  EXPECT_EQ(told_apart(made), 1U);
  EXPECT_EQ(called(made.ranks[1], "n2"), "MPI on n2");
  EXPECT_EQ(called(Rank{3, 1, 0, "worker", 0, {}}, "n2"), "rank 3 on n2");
}

TEST(MpiJob, ContainersAreNoRanks) {
  const Rank rank = plan(mpi_job(), kPlaces, "j", 0).ranks[1];
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MLENV_SHARD"}) {
    EXPECT_EQ(value_of(rank, name), "(absent)") << name;
  }
  EXPECT_EQ(value_of(rank, "MLENV_MPI_HOSTS"), "n1=10.9.0.1;20001;2,n2=10.9.0.2;20101;2");
  EXPECT_EQ(value_of(rank, "OMPI_MCA_plm_rsh_agent"), "/run/mlenv-mpi/bin/ssh");
  EXPECT_EQ(value_of(rank, "MASTER_PORT"), "20000");
}

TEST(MpiJob, TheInterfaceByNameOrByNetwork) {
  Rank rank = plan(mpi_job(), kPlaces, "j", 0).ranks[1];
  EXPECT_EQ(value_of(rank, "OMPI_MCA_btl_tcp_if_include"), "eth0");
  EXPECT_EQ(value_of(rank, "UCX_NET_DEVICES"), "eth0");
  std::vector<Place> places = kPlaces;
  places[1].interface = "ib0";
  Job job = mpi_job();
  job.options.rdma = true;  // it would be kept from the InfiniBand devices
  rank = plan(job, places, "j", 0).ranks[1];
  EXPECT_EQ(value_of(rank, "OMPI_MCA_oob_tcp_if_include"), "10.9.0.0/30");
  EXPECT_EQ(value_of(rank, "HYDRA_IFACE"), "ib0");
  EXPECT_EQ(value_of(rank, "UCX_NET_DEVICES"), "(absent)");
}

TEST(MpiJob, TheFirstRunsTheCommandAndOthersWait) {
  const JobPlan made = plan(mpi_job(), kPlaces, "j", 0);
  RankStart first;
  first.run.config.entrypoint = {"/entry"};
  first.run.config.command = {"train"};
  start_mpi(mpi_job(), kPlaces, made.ranks[0], "s", first);
  EXPECT_EQ(first.run.argv, (std::vector<std::string>{"/run/mlenv-mpi/mlenv-node", "mpi", "launch",
                                                      "--", "/entry", "train"}));
  EXPECT_EQ(first.run.env.back(), "MLENV_MPI_TOKEN=s");
  RankStart second;
  second.run.argv = {"python", "x"};
  start_mpi(mpi_job(), kPlaces, made.ranks[1], "s", second);
  EXPECT_EQ(second.run.argv,
            (std::vector<std::string>{"/run/mlenv-mpi/mlenv-node", "mpi", "wait"}));
  EXPECT_EQ(second.mpi_hosts, value_of(made.ranks[0], "MLENV_MPI_HOSTS"));
}

TEST(MpiJob, SecretsAreOfMpiAlone) {
  EXPECT_EQ(mpi_secret(mpi_job()).size(), 64U);
  EXPECT_EQ(mpi_secret(Job{}), "");
}

TEST(MpiJob, SumsByMpiAreStartedByMpi) {
  JobParts parts;
  parts.framework = Framework::mpi;
  EXPECT_EQ(job_of(parts).strategy, Strategy::mpi);
  parts.strategy = Strategy::plain;
  EXPECT_EQ(job_of(parts).strategy, Strategy::plain);
  parts = {};
  parts.strategy = Strategy::mpi;
  EXPECT_EQ(job_of(parts).framework, Framework::mpi);
}

}  // namespace
}  // namespace mlenv::job
