// The seed corpora of the fuzz targets, through the same functions: what CI's fuzzing starts from
// holds in every build.
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "tests/fuzz/one_ignore.hpp"
#include "tests/fuzz/one_lock.hpp"
#include "tests/fuzz/one_recipe.hpp"

namespace mlenv {
namespace {

/// `good-…` must be read, `bad-…` refused.
template <typename Take>
int run_corpus(const char* name, Take take) {
  const fs::path tests = fs::path(__FILE__).parent_path().parent_path().parent_path();
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(tests / "fuzz/corpus" / name)) {
    const std::string file = entry.path().filename().string();
    SCOPED_TRACE(file);
    EXPECT_EQ(take(read_file(entry.path())), file.starts_with("good-"));
    ++count;
  }
  return count;
}

TEST(Corpus, Recipes) { EXPECT_GE(run_corpus("recipe", fuzz::one_recipe), 10); }
TEST(Corpus, Ignores) { EXPECT_GE(run_corpus("ignore", fuzz::one_ignore), 8); }
TEST(Corpus, Locks) { EXPECT_GE(run_corpus("lock", fuzz::one_lock), 8); }

TEST(Corpus, CatalogRecipesAreGood) {
  const fs::path root = fs::path(__FILE__).parent_path().parent_path().parent_path().parent_path();
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "recipes/catalog")) {
    EXPECT_TRUE(fuzz::one_recipe(read_file(entry.path()))) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace mlenv
