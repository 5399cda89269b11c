#include "runner/job/patience.hpp"

#include <gtest/gtest.h>

namespace mlenv::job {
namespace {

using std::chrono::seconds;

TEST(PatienceTest, EndsAfterAWhileAndAgainNowAndThen) {
  Patience patience;
  const Patience::Clock::time_point start{};
  EXPECT_EQ(patience.ends("the image", start), std::nullopt);
  EXPECT_EQ(patience.ends("the image", start + seconds{14}), std::nullopt);
  EXPECT_EQ(patience.ends("the image", start + seconds{15}), seconds{15});
  EXPECT_EQ(patience.ends("the image", start + seconds{74}), std::nullopt);
  EXPECT_EQ(patience.ends("the image", start + seconds{75}), seconds{75});
}

TEST(PatienceTest, BeginsAnewWithWhatIsWaitedFor) {
  Patience patience;
  const Patience::Clock::time_point start{};
  EXPECT_EQ(patience.ends("the image", start), std::nullopt);
  EXPECT_EQ(patience.ends("the code", start + seconds{14}), std::nullopt);
  EXPECT_EQ(patience.ends("the code", start + seconds{28}), std::nullopt);
  EXPECT_EQ(patience.ends("the code", start + seconds{29}), seconds{15});
  EXPECT_EQ(patience.ends("", start + seconds{30}), std::nullopt);
  EXPECT_EQ(patience.ends("", start + seconds{300}), std::nullopt);
}

}  // namespace
}  // namespace mlenv::job
