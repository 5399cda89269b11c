// With real processes.
#include "runner/compare/launch.hpp"

#include <gtest/gtest.h>
#include <sys/types.h>
#include <charconv>
#include <csignal>

namespace mlenv::compare {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongLaunch{60000};

class CompareLaunch : public testing::Test {
 protected:
  Launched run(const std::string& script, milliseconds deadline = kLongLaunch) {
    Command command{Purpose{"test"}};
    command.argv = {"sh", "-c", script};
    return launch(minder_, command, deadline, signals_);
  }

 private:
  Minder minder_{Ending::kill};
  StopSignals signals_;
};

TEST_F(CompareLaunch, SaysWhatItSaidAndHowItEnded) {
  const Launched launched = run("echo mlenv-compare mark user; echo wrong >&2; exit 3");
  EXPECT_EQ(launched.exit, (Exit{3, false}));
  EXPECT_EQ(launched.out, "mlenv-compare mark user\n");
  EXPECT_EQ(launched.err, "wrong\n");
  EXPECT_FALSE(launched.timed_out);
  ASSERT_TRUE(launched.marks.contains("user"));
  ASSERT_TRUE(launched.last_line.has_value());
  EXPECT_LE(launched.marks.at("user"), *launched.last_line);
  EXPECT_LE(*launched.last_line, launched.seconds);
}

TEST_F(CompareLaunch, ADaemonThatHoldsItsStreamsIsNotWaitedFor) {
  const Launched launched = run("setsid sleep 1000 & echo $!");
  EXPECT_FALSE(launched.timed_out);
  EXPECT_EQ(launched.exit, (Exit{0, false}));
  pid_t daemon = 0;
  std::from_chars(launched.out.data(), launched.out.data() + launched.out.size(), daemon);
  ASSERT_GT(daemon, 1) << launched.out;
  EXPECT_NE(::kill(daemon, 0), 0) << "it goes on";
}

TEST_F(CompareLaunch, NorIsOneThatNeverStopsWriting) {
  const Launched launched = run("setsid yes & echo begun; exit 0");
  EXPECT_FALSE(launched.timed_out);
  EXPECT_EQ(launched.exit, (Exit{0, false}));
}

TEST_F(CompareLaunch, AllThatItSaidBeforeItsEndIsThere) {
  constexpr std::size_t kBytes = 300000;  // more than a pipe holds
  const Launched launched = run("head -c 300000 /dev/zero; head -c 50000 /dev/zero >&2");
  EXPECT_EQ(launched.out.size(), kBytes);
  EXPECT_EQ(launched.err.size(), 50000U);
}

TEST_F(CompareLaunch, WhoeverClosedItsStreamsGoesOnToItsEnd) {
  const Launched launched = run("exec >&- 2>&-; sleep 0.2; exit 5");
  EXPECT_EQ(launched.exit, (Exit{5, false}));
}

TEST_F(CompareLaunch, AtTheDeadlineItEnds) {
  const Launched launched = run("echo $$; exec >&- 2>&-; exec sleep 1000", milliseconds(300));
  EXPECT_TRUE(launched.timed_out);
  EXPECT_EQ(launched.exit, Exit{});
}

}  // namespace
}  // namespace mlenv::compare
