#include "images/partial_blob.hpp"

#include <gtest/gtest.h>

#include "images/store.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class PartialBlobTest : public ::testing::Test {
 protected:
  PartialBlobTest() : folder_(temporary_root()), store_(folder_.path() / "store") {
    for (std::size_t i = 0; i < 2 * kPieceBytes + 17; ++i) {
      content_ += static_cast<char>('a' + i * 7 / 1000 % 26);
    }
  }
  Digest digest() const { return Digest::of(content_); }
  std::unique_ptr<PartialBlob> partial() { return store_.partial(digest(), content_.size()); }
  void put(PartialBlob& blob, std::size_t piece) const {
    const std::size_t offset = piece * kPieceBytes;
    blob.write(offset, as_bytes(std::string_view(content_).substr(offset, kPieceBytes)));
    blob.mark(piece);
  }
  std::vector<fs::path> left() const { return list_folder(folder_.path() / "store/partial"); }

  TemporaryFolder folder_;
  Store store_;
  std::string content_;
};

TEST_F(PartialBlobTest, ComesInAnyOrderAndIsABlobWhenItIsWhole) {
  const auto blob = partial();
  ASSERT_EQ(blob->pieces(), 3U);
  put(*blob, 2);
  EXPECT_FALSE(blob->hash_some(content_.size()));
  put(*blob, 0);
  EXPECT_TRUE(blob->hash_some(100));
  EXPECT_FALSE(store_.has(digest()));
  put(*blob, 1);
  EXPECT_TRUE(blob->whole());
  blob->commit();
  EXPECT_EQ(store_.read(digest()), content_);
  EXPECT_TRUE(left().empty());
  EXPECT_TRUE(store_.verify(false, [](std::string_view) {}).empty());
}

TEST_F(PartialBlobTest, WhatCameIsKeptForTheNextOne) {
  put(*partial(), 1);
  {
    const auto again = partial();
    EXPECT_TRUE(again->has(1));
    EXPECT_FALSE(again->has(0));
    put(*again, 0);
  }
  const auto last = partial();
  put(*last, 2);
  EXPECT_TRUE(last->whole());
  last->commit();
  EXPECT_EQ(store_.read(digest()), content_);
}

TEST_F(PartialBlobTest, TwoAtOnceDoNotMeet) {
  const auto one = partial();
  const auto other = partial();
  for (std::size_t piece = 0; piece < 3; ++piece) put(*one, piece);
  EXPECT_FALSE(other->has(0));
  one->commit();
  for (std::size_t piece = 0; piece < 3; ++piece) put(*other, piece);
  other->commit();
  EXPECT_EQ(store_.read(digest()), content_);
}

TEST_F(PartialBlobTest, WhatIsNotItsDigestLeavesNothing) {
  const auto blob = partial();
  for (std::size_t piece = 0; piece < 3; ++piece) put(*blob, piece);
  blob->write(5, as_bytes("?"));
  EXPECT_EQ(code_of([&] { blob->commit(); }), "digest-mismatch");
  EXPECT_FALSE(store_.has(digest()));
  EXPECT_TRUE(left().empty());
  EXPECT_FALSE(partial()->has(0));
}

TEST_F(PartialBlobTest, WhatAnotherBootWroteIsNotBelieved) {
  put(*partial(), 1);
  const fs::path have = folder_.path() / "store/partial" / (digest().hex() + ".have");
  std::string text = read_file(have);
  text[2] = text[2] == '0' ? '1' : '0';
  write_file(have, text);
  EXPECT_FALSE(partial()->has(1));
}

TEST_F(PartialBlobTest, AnEmptyBlobHasNoPieces) {
  const Digest empty = Digest::of("");
  const auto blob = store_.partial(empty, 0);
  EXPECT_TRUE(blob->whole());
  blob->commit();
  EXPECT_TRUE(store_.has(empty));
}

}  // namespace
}  // namespace mlenv
