#include "base/duration.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Duration, NumberAndUnit) {
  EXPECT_EQ(parse_duration("90"), seconds(90));
  EXPECT_EQ(parse_duration("0"), seconds(0));
  EXPECT_EQ(parse_duration("1.5s"), milliseconds(1500));
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("10m"), minutes(10));
  EXPECT_EQ(parse_duration("2h"), hours(2));
  EXPECT_EQ(parse_duration("30d"), hours(720));
  EXPECT_EQ(parse_duration("1h30m"), minutes(90));
  EXPECT_EQ(parse_duration("1d2h3m4s5ms"), hours(26) + minutes(3) + seconds(4) + milliseconds(5));
}

TEST(Duration, NothingElse) {
  for (const char* text : {"", "s", "-1s", "1.s", ".5s", "1.2.3s", "1x", "1 s", "30m1h", "1h30",
                           "1h1h", "1S", "99999999999999999999", "1000000d", "1s ", "+1", "1e3"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace mlenv
