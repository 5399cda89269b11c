// The seed corpus of the fuzz target of a node's link, through the same function.
#include <gtest/gtest.h>

#include "tests/fuzz/one_messages.hpp"
#include "tests/support/corpus.hpp"

namespace mlenv {
namespace {

TEST(Corpus, Messages) {
  EXPECT_GE(run_corpus("messages",
                       [](const std::string& text) { return fuzz::one_messages(as_bytes(text)); }),
            5);
}

}  // namespace
}  // namespace mlenv
