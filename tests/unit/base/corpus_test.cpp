// The seed corpora of the zip and tar fuzz targets, through the same functions.
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "tests/fuzz/one_tar.hpp"
#include "tests/fuzz/one_zip.hpp"

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
    EXPECT_EQ(take(as_bytes(read_file(entry.path()))), file.starts_with("good-"));
    ++count;
  }
  return count;
}

TEST(Corpus, Zips) { EXPECT_GE(run_corpus("zip", fuzz::one_zip), 6); }
TEST(Corpus, Tars) { EXPECT_GE(run_corpus("tar", fuzz::one_tar), 6); }

}  // namespace
}  // namespace mlenv
