#include "images/name_history.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "images/store.hpp"

namespace mlenv {
namespace {

Digest digest(int number) { return Digest::of(std::to_string(number)); }

TEST(NameHistory, LinesThatAreNoneAreLeftOut) {
  const std::vector<PastName> past{{7, digest(1)}, {9, digest(2)}};
  EXPECT_EQ(parse_name_history(render_name_history(past)), past);
  const std::string torn = "x\n7 sha256:12\n" + render_name_history(past) + "12";
  EXPECT_EQ(parse_name_history(torn), past);
}

TEST(NameHistory, EachImageIsThereOnceAndTheOldestGo) {
  std::vector<PastName> past = after_move({}, {1, digest(1)}, digest(2));
  past = after_move(past, {2, digest(2)}, digest(1));
  EXPECT_EQ(past, (std::vector<PastName>{{2, digest(2)}}));
  for (int i = 0; i < 50; ++i) past = after_move(past, {i, digest(i + 10)}, digest(i + 11));
  EXPECT_EQ(past.size(), kMostPastNames);
  EXPECT_EQ(past.back().manifest, digest(59));
}

class StoreHistoryTest : public ::testing::Test {
 protected:
  StoreHistoryTest() : folder_(temporary_root()), store_(folder_.path()) {}
  std::vector<Digest> meanings() const {
    std::vector<Digest> all;
    for (const Store::Meaning& one : store_.history(name_)) all.push_back(one.manifest);
    return all;
  }
  TemporaryFolder folder_;
  Store store_;
  Reference name_ = Reference::parse("train:prod");
};

TEST_F(StoreHistoryTest, TheNewestComesFirstAndGoesWithItsName) {
  EXPECT_TRUE(meanings().empty());
  const Digest a = store_.put("a");
  const Digest b = store_.put("b");
  store_.tag(name_, a);
  store_.tag(name_, a);
  EXPECT_EQ(meanings(), std::vector<Digest>{a});
  store_.tag(name_, b);
  EXPECT_EQ(meanings(), (std::vector<Digest>{b, a}));
  store_.tag(name_, a);
  EXPECT_EQ(meanings(), (std::vector<Digest>{a, b}));
  EXPECT_FALSE(store_.history(name_)[0].whole);  // it is no image
  EXPECT_TRUE(store_.untag(name_));
  store_.tag(name_, b);
  EXPECT_EQ(meanings(), std::vector<Digest>{b});
}

TEST_F(StoreHistoryTest, OfTwoWritersNoneIsForgotten) {
  std::vector<Digest> all;
  for (int i = 0; i < 16; ++i) all.push_back(store_.put(std::to_string(i)));
  const auto tag_some = [&](std::size_t first) {
    Store own{folder_.path()};
    for (std::size_t i = first; i < all.size(); i += 2) own.tag(name_, all[i]);
  };
  std::thread other{tag_some, 0};
  tag_some(1);
  other.join();
  EXPECT_EQ(meanings().size(), all.size());
}

}  // namespace
}  // namespace mlenv
