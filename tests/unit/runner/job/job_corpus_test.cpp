// The seed corpus of job_fuzz, through the same function.
#include <gtest/gtest.h>

#include "tests/fuzz/one_job.hpp"
#include "tests/support/corpus.hpp"

namespace mlenv {
namespace {

TEST(Corpus, Jobs) { EXPECT_GE(run_corpus("job", fuzz::one_job), 7); }

}  // namespace
}  // namespace mlenv
