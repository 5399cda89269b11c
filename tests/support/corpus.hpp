#pragma once
// The tests' own files in the source tree, and the seed corpora of the fuzz targets among them.
#include <gtest/gtest.h>

#include <string>

#include "base/files.hpp"

namespace mlenv {

/// The root of the source tree that the tests were configured from. Not by `__FILE__`: a compiler
/// cache may have made that relative.
inline fs::path source_folder() { return MLENV_SOURCE_FOLDER; }

/// Gives each text of `tests/fuzz/corpus/NAME` to `take`: `good-…` must be read, `bad-…` refused.
/// Returns how many there were.
template <typename Take>
int run_corpus(const char* name, Take take) {
  int count = 0;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(source_folder() / "tests/fuzz/corpus" / name)) {
    const std::string file = entry.path().filename().string();
    SCOPED_TRACE(file);
    EXPECT_EQ(take(read_file(entry.path())), file.starts_with("good-"));
    ++count;
  }
  return count;
}

}  // namespace mlenv
