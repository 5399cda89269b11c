#include "runner/mpi/launch_words.hpp"

#include <gtest/gtest.h>

namespace mlenv::mpi {
namespace {

TEST(MpiLaunch, ProgramsThatStartRanksThemselves) {
  for (const char* program : {"mpirun", "/usr/bin/mpiexec", "horovodrun", "deepspeed"}) {
    EXPECT_TRUE(starts_ranks(program)) << program;
  }
  for (const char* program : {"python", "sh", "/opt/mpirun/bin/python"}) {
    EXPECT_FALSE(starts_ranks(program)) << program;
  }
}

TEST(MpiLaunch, FlavoursByWhatTheySay) {
  EXPECT_EQ(flavour_of("mpirun (Open MPI) 4.1.4\n\nReport bugs to …"), Flavour::open_mpi);
  EXPECT_EQ(flavour_of("HYDRA build details:\n    Version: 4.0.2\n"), Flavour::hydra);
  EXPECT_EQ(flavour_of("Intel(R) MPI Library for Linux* OS, Version 2021.9"), Flavour::hydra);
  EXPECT_EQ(flavour_of("something else"), std::nullopt);
}

TEST(MpiLaunch, MpirunIsAskedForAllRanks) {
  EXPECT_EQ(mpirun_argv(Flavour::open_mpi, 6, 2, "/p", {"python", "t.py"}),
            (std::vector<std::string>{"mpirun", "-np", "6", "--tag-output", "/p", "mpi", "rank",
                                      "--", "python", "t.py"}));
  EXPECT_EQ(mpirun_argv(Flavour::hydra, 6, 2, "/p", {"x"}),
            (std::vector<std::string>{"mpirun", "-np", "6", "-ppn", "2", "-prepend-rank", "/p",
                                      "mpi", "rank", "--", "x"}));
  EXPECT_EQ(mpirun_argv(Flavour::open_mpi, 1, 1, "/p", {"x"}),
            (std::vector<std::string>{"mpirun", "-np", "1", "/p", "mpi", "rank", "--", "x"}));
}

TEST(MpiLaunch, ARankKnowsItsPlace) {
  EXPECT_EQ(rank_place({{"OMPI_COMM_WORLD_RANK", "3"},
                        {"OMPI_COMM_WORLD_SIZE", "6"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                        {"PMIX_RANK", "3"}}),
            (RankPlace{3, 6, 1, 2}));
  EXPECT_EQ(rank_place({{"PMI_RANK", "2"},
                        {"PMI_SIZE", "4"},
                        {"MPI_LOCALRANKID", "1"},
                        {"MPI_LOCALNRANKS", "3"}}),
            (RankPlace{2, 4, 1, 3}));
  EXPECT_EQ(rank_place({{"PMIX_RANK", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}}),
            (RankPlace{5, 8, 1, 1}));
  EXPECT_EQ(rank_place({{"SLURM_PROCID", "5"}}), std::nullopt);
  EXPECT_EQ(rank_place({{"PMIX_RANK", "x"}}), std::nullopt);
}

std::string shown_ranks(RankLines lines, std::string_view text, std::size_t piece) {
  std::string out;
  while (!text.empty()) {
    out += lines.take(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  return out + lines.rest();
}

TEST(MpiLaunch, LinesSayWhoseTheyAreHoweverTheyCome) {
  constexpr std::string_view kText =
      "a note of mpirun [1\n[1,0]<stdout>:one\n[1,1]<stderr>:tw[1,0]<stdout>:thr"
      "[1,1]<stderr>:o\n[1,0]<stdout>:ee\n[1,1]<stdout>:[a,b] [3,4] no tag\nend[";
  constexpr std::string_view kShown =
      "a note of mpirun [1\n0: one\n1: two\n0: three\n1: [a,b] [3,4] no tag\nend[\n";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, kText.size()}) {
    EXPECT_EQ(shown_ranks({Flavour::open_mpi, 2}, kText, piece), kShown) << piece;
  }
}

TEST(MpiLaunch, NumbersAreAsWideAsTheLargest) {
  EXPECT_EQ(shown_ranks({Flavour::open_mpi, 12}, "[1,3]<stdout>:x\n[1,11]<stdout>:y\n", 5),
            " 3: x\n11: y\n");
}

TEST(MpiLaunch, HydrasLines) {
  EXPECT_EQ(shown_ranks({Flavour::hydra, 2}, "[0] one\n[1] two\n[x] three\nfour\n", 3),
            "0: one\n1: two\n[x] three\nfour\n");
}

TEST(MpiLaunch, OneRankWritesAsItIs) {
  EXPECT_EQ(shown_ranks({Flavour::open_mpi, 1}, "50 %\r[1,0]<stdout>:x", 4),
            "50 %\r[1,0]<stdout>:x");
}

}  // namespace
}  // namespace mlenv::mpi
