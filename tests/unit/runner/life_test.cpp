#include "runner/local/life.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

using std::chrono::milliseconds;

bool again(const char* policy, int code, std::uint64_t attempts) {
  return RestartPolicy::parse(policy).value().again({code, false}, attempts);
}

TEST(RestartPolicy, Words) {
  EXPECT_FALSE(again("no", 1, 1));
  EXPECT_TRUE(again("on-failure", 1, 1000));
  EXPECT_FALSE(again("on-failure", 0, 1));
  EXPECT_TRUE(again("on-failure:2", 1, 2));
  EXPECT_FALSE(again("on-failure:2", 1, 3));
  EXPECT_FALSE(again("on-failure:0", 1, 1));
  EXPECT_TRUE(again("always", 0, 1));
  EXPECT_TRUE(again("unless-stopped", 0, 1));
  for (const char* text : {"", "yes", "on-failure:", "on-failure:x", "on-failure:-1", "always:3",
                           "on-failure:99999999999999"}) {
    EXPECT_FALSE(RestartPolicy::parse(text)) << text;
  }
}

TEST(Signal, NamesAndNumbers) {
  EXPECT_EQ(parse_signal("TERM"), SIGTERM);
  EXPECT_EQ(parse_signal("SIGUSR1"), SIGUSR1);
  EXPECT_EQ(parse_signal("int"), SIGINT);
  EXPECT_EQ(parse_signal("9"), SIGKILL);
  for (const char* text : {"", "0", "SIG", "TERMINATE", "-9", "1000"}) {
    EXPECT_EQ(parse_signal(text), std::nullopt) << text;
  }
}

TEST(BackOff, DoublesUpToAMinute) {
  BackOff back_off;
  const milliseconds brief{5};
  EXPECT_EQ(back_off.after(brief), milliseconds(100));
  EXPECT_EQ(back_off.after(brief), milliseconds(200));
  EXPECT_EQ(back_off.after(brief), milliseconds(400));
  for (int i = 0; i < 20; ++i) (void)back_off.after(brief);
  EXPECT_EQ(back_off.after(brief), milliseconds(60'000));
  EXPECT_EQ(back_off.after(milliseconds(10'000)), milliseconds(100));
}

}  // namespace
}  // namespace mlenv
