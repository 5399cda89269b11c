// What grep, sed and their kin leave of a list.
#include "recipes/init/text_filters.hpp"

#include <gtest/gtest.h>

#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kNeeds = "Numpy==1.26.4\n# dev\npytest>=8\ntorch==2.1\ntorchvision\n";

std::optional<std::string> filtered_by(const Strings& words, std::string_view input = kNeeds) {
  const auto filter = text_filter(words);
  return filter ? filtered(*filter, input) : std::nullopt;
}

TEST(TextFiltersTest, GrepLeavesLinesOut) {
  EXPECT_EQ(filtered_by({"grep", "-v", "^torch"}), "Numpy==1.26.4\n# dev\npytest>=8\n");
  EXPECT_EQ(filtered_by({"grep", "-viE", "^(numpy|torch)|#"}), "pytest>=8\n");
  EXPECT_EQ(filtered_by({"grep", "-v", "torch\\|numpy", "-i"}), "# dev\npytest>=8\n");
  EXPECT_EQ(filtered_by({"grep", "-v", "-e", "torch", "-e", "#"}), "Numpy==1.26.4\npytest>=8\n");
  EXPECT_EQ(filtered_by({"grep", "-Fi", "NUMPY=="}), "Numpy==1.26.4\n");
  EXPECT_EQ(filtered_by({"egrep", "torch$"}), "");
  EXPECT_EQ(filtered_by({"grep", "--invert-match", "--regexp=torch"}),
            "Numpy==1.26.4\n# dev\npytest>=8\n");
}

TEST(TextFiltersTest, SedChangesLines) {
  EXPECT_EQ(filtered_by({"sed", "-i", "/torch/d;/^#/d", "a.txt"}), "Numpy==1.26.4\npytest>=8\n");
  EXPECT_EQ(filtered_by({"sed", "-e", "s/==.*//", "-e", "1d"}),
            "# dev\npytest>=8\ntorch\ntorchvision\n");
  EXPECT_EQ(filtered_by({"sed", "s/\\(torch\\)==/\\1>=/g", "a"}, "torch==1\n"), "torch>=1\n");
  EXPECT_EQ(filtered_by({"sed", "-E", "s|^(t)orch|\\1&|"}, "torch\n"), "ttorch\n");
  EXPECT_EQ(filtered_by({"sed", "2,$d"}), "Numpy==1.26.4\n");
  EXPECT_EQ(filtered_by({"sed", "s/a*/x/g"}, "baac\n"), "xbxxcx\n");
  EXPECT_EQ(filtered_by({"sed", "$d"}, "a\nb\n"), "a\n");
}

TEST(TextFiltersTest, WhatIsNotKnownIsNone) {
  for (const Strings& words :
       {Strings{"grep", "-c", "x"}, Strings{"sed", "-n", "/x/p"}, Strings{"sed", "a\\ x"},
        Strings{"awk", "{print $1}"}, Strings{"grep", "-v", "\\(a\\)\\1"},
        Strings{"grep", "a\\{1000\\}"}, Strings{"grep", "["}, Strings{"sed", "s/a/b"}, Strings{}}) {
    EXPECT_EQ(filtered_by(words), std::nullopt) << (words.empty() ? "" : words.front());
  }
}

TEST(TextFiltersTest, BeginningsAndEnds) {
  EXPECT_EQ(filtered_by({"tail", "-n", "+3"}), "pytest>=8\ntorch==2.1\ntorchvision\n");
  EXPECT_EQ(filtered_by({"tail", "-n1"}), "torchvision\n");
  EXPECT_EQ(filtered_by({"head", "-n", "1"}), "Numpy==1.26.4\n");
  EXPECT_EQ(filtered_by({"head", "-n", "-1"}), std::nullopt);
  EXPECT_EQ(filtered_by({"cat"}), kNeeds);
}

TEST(TextFiltersTest, FilesThatItReads) {
  const auto sed = text_filter({"sed", "-i.bak", "/x/d", "a.txt", "b.txt"});
  ASSERT_TRUE(sed);
  EXPECT_TRUE(sed->in_place);
  EXPECT_EQ(sed->files, (Strings{"a.txt", "b.txt"}));
  EXPECT_EQ(text_filter({"grep", "-v", "x", "a.txt"})->files, Strings{"a.txt"});
  EXPECT_EQ(text_filter({"tail", "-n", "+2", "a.txt"})->files, Strings{"a.txt"});
}

}  // namespace
}  // namespace mlenv
