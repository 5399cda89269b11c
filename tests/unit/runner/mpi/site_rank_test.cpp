#include "runner/mpi/site_rank.hpp"

#include <gtest/gtest.h>
#include <algorithm>

#include "tests/support/error_code.hpp"

namespace mlenv::mpi {
namespace {

TEST(SiteRank, NobodyStartedItAsOne) {
  EXPECT_FALSE(site_rank({{"SLURM_PROCID", "1"}, {"RANK", "1"}}));
}

TEST(SiteRank, HasWhatItsLauncherGaveIt) {
  const TemporaryFolder folder{fs::temp_directory_path()};
  const std::string top = folder.path();
  fs::create_directory(folder.path() / "jf");
  const auto rank = site_rank({{"PMIX_RANK", "1"},
                               {"OMPI_COMM_WORLD_SIZE", "4"},
                               {"OMPI_MCA_orte_top_session_dir", top},
                               {"PMIX_SERVER_TMPDIR", top + "/jf/"},
                               {"HOME", "/root"}});
  ASSERT_TRUE(rank);
  EXPECT_FALSE(rank->alone);
  EXPECT_EQ(rank->folders, std::vector<std::string>{top});
  EXPECT_EQ(std::count(rank->variables.begin(), rank->variables.end(), "HOME"), 0);
  LocalRun run;
  run.env = {"RANK=9"};
  join_site(*rank, run);
  EXPECT_EQ(run.env.front(), "OMPI_MCA_btl=^vader,sm");
  EXPECT_EQ(run.env.back(), "RANK=9");
  ASSERT_EQ(run.mounts.size(), 2U);
  EXPECT_EQ(run.mounts[0].target, "/dev/shm");
  EXPECT_EQ(run.mounts[1].target, top);
  run.options.network = "none";
  EXPECT_EQ(code_of([&] { join_site(*rank, run); }), "usage");
}

TEST(SiteRank, WithADescriptorItIsAlone) {
  const auto rank = site_rank({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_FD", "11"}});
  ASSERT_TRUE(rank);
  EXPECT_TRUE(rank->alone);
  LocalRun run;
  join_site(*rank, run);
  EXPECT_TRUE(run.env.empty() && run.mounts.empty());
  EXPECT_NE(site_note(*rank).find("srun --mpi=pmix"), std::string::npos);
}

TEST(SiteRank, TheFirstOfSeveralSaysSo) {
  EXPECT_NE(site_note({{0, 2, 0, 1}, false, {}, {}}), "");
  EXPECT_EQ(site_note({{1, 2, 0, 1}, false, {}, {}}), "");
  EXPECT_EQ(site_note({{0, 1, 0, 1}, false, {}, {}}), "");
}

}  // namespace
}  // namespace mlenv::mpi
