// The seed corpora of the fuzz targets, through the same functions: what CI's fuzzing starts from
// holds in every build.
#include <gtest/gtest.h>

#include "tests/fuzz/one_ignore.hpp"
#include "tests/fuzz/one_lock.hpp"
#include "tests/fuzz/one_recipe.hpp"
#include "tests/fuzz/one_requirements.hpp"
#include "tests/support/corpus.hpp"

namespace mlenv {
namespace {

TEST(Corpus, Recipes) { EXPECT_GE(run_corpus("recipe", fuzz::one_recipe), 10); }
TEST(Corpus, Requirements) { EXPECT_GE(run_corpus("requirements", fuzz::one_requirements), 8); }
TEST(Corpus, Ignores) { EXPECT_GE(run_corpus("ignore", fuzz::one_ignore), 8); }
TEST(Corpus, Locks) { EXPECT_GE(run_corpus("lock", fuzz::one_lock), 8); }

TEST(Corpus, CatalogRecipesAreGood) {
  int count = 0;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(source_folder() / "recipes/catalog")) {
    EXPECT_TRUE(fuzz::one_recipe(read_file(entry.path()))) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace mlenv
