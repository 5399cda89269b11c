// The seed corpora of the DEFLATE, zip, tar and ELF fuzz targets, through the same functions.
#include <gtest/gtest.h>

#include "tests/fuzz/one_deflate.hpp"
#include "tests/fuzz/one_elf.hpp"
#include "tests/fuzz/one_tar.hpp"
#include "tests/fuzz/one_zip.hpp"
#include "tests/support/corpus.hpp"

namespace mlenv {
namespace {

TEST(Corpus, DeflateStreams) {
  EXPECT_GE(run_corpus("deflate",
                       [](const std::string& text) { return fuzz::one_deflate(as_bytes(text)); }),
            11);
}
TEST(Corpus, Zips) {
  EXPECT_GE(
      run_corpus("zip", [](const std::string& text) { return fuzz::one_zip(as_bytes(text)); }), 6);
}
TEST(Corpus, Tars) {
  EXPECT_GE(
      run_corpus("tar", [](const std::string& text) { return fuzz::one_tar(as_bytes(text)); }), 6);
}
TEST(Corpus, Elves) {
  EXPECT_GE(
      run_corpus("elf", [](const std::string& text) { return fuzz::one_elf(as_bytes(text)); }), 6);
}

}  // namespace
}  // namespace mlenv
