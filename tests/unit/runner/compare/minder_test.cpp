// With real processes: what one of them leaves holds the write end of a pipe, whose reader is told
// when the last of them is gone.
#include "runner/compare/minder.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>
#include <array>

#include "base/files.hpp"
#include "runner/compare/started.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongMinding{20000};

class CompareMinder : public testing::Test {
 protected:
  Command saying(const std::string& script) const {
    Command command{Purpose{"test"}};
    command.argv = {"sh", "-c", script};
    command.stdout_fd = pipe_.write_end.get();
    return command;
  }
  Started start(const Minder& minder, const std::string& script) {
    Started started(minder, saying(script));
    pipe_.write_end.reset();
    return started;
  }
  bool says_something() { return read_some() > 0; }
  bool is_closed_within(milliseconds deadline) {
    pollfd fd{pipe_.read_end.get(), POLLIN, 0};
    return ::poll(&fd, 1, static_cast<int>(deadline.count())) > 0 && read_some() == 0;
  }

  void close_ours() { pipe_.write_end.reset(); }

 private:
  ssize_t read_some() {
    std::array<char, 64> buffer{};
    return ::read(pipe_.read_end.get(), buffer.data(), buffer.size());
  }
  Pipe pipe_ = make_pipe();
};

TEST_F(CompareMinder, SaysHowItEnded) {
  const Minder minder(Ending::kill);
  EXPECT_EQ(start(minder, "exit 7").wait(kLongMinding), (Exit{7, false}));
  Command command{Purpose{"test"}};
  command.argv = {"sh", "-c", "kill -9 $$"};
  EXPECT_EQ(Started(minder, command).wait(kLongMinding), (Exit{137, true}));
  command.argv = {"/nonexistent/program"};
  EXPECT_EQ(code_of([&] { const Started started(minder, command); }), "cannot-start");
}

TEST_F(CompareMinder, StartsWhereItIsTold) {
  const Minder minder(Ending::kill);
  const TemporaryFolder folder(temporary_root());
  Command command{Purpose{"test"}};
  command.argv = {"sh", "-c", R"([ "$PWD" = "$1" ] && [ "$A" = b ] && [ -z "$HOME" ])", "sh",
                  folder.path().string()};
  command.env = {"A=b", "PATH=/usr/bin:/bin"};
  command.folder = folder.path();
  EXPECT_EQ(Started(minder, command).wait(kLongMinding), (Exit{0, false}));
}

TEST_F(CompareMinder, ADaemonGoesWithItsCommand) {
  const Minder minder(Ending::kill);
  Started started = start(minder, "setsid sh -c 'sleep 1000; :' & echo");
  EXPECT_TRUE(says_something());
  EXPECT_EQ(started.wait(kLongMinding), (Exit{0, false}));
  EXPECT_TRUE(is_closed_within(milliseconds(0)));
}

TEST_F(CompareMinder, WhatItStartsCanOnlyReadWhereItIsTold) {
  const TemporaryFolder folder(temporary_root());
  const fs::path file = folder.path() / "file";
  const Minder minder(Ending::kill, folder.path());
  write_file(file, "ours", false);  // it stays as it was for all others
  if (!minder.unshielded().empty()) GTEST_SKIP() << minder.unshielded();
  const auto status = [&](const std::string& script) {
    Command command{Purpose{"test"}};
    command.argv = {"sh", "-c", script, "sh", file.string()};
    return Started(minder, command).wait(kLongMinding)->code;
  };
  EXPECT_EQ(status("grep -q ours \"$1\""), 0);
  EXPECT_NE(status("echo theirs >\"$1\""), 0);
  EXPECT_NE(status("rm \"$1\""), 0);
  EXPECT_EQ(status("test $(id -u) = " + std::to_string(::getuid())), 0);
  const TemporaryFolder beside(temporary_root());
  EXPECT_EQ(status(": >" + (beside.path() / "file").string()), 0);
  EXPECT_EQ(read_file(file), "ours");
}

TEST_F(CompareMinder, WhereItCannotBeToldItSaysSoAndStartsAllTheSame) {
  const Minder minder(Ending::kill, "/nonexistent/folder");
  EXPECT_NE(minder.unshielded(), "");
  Command command{Purpose{"test"}};
  command.argv = {"sh", "-c", "exit 7"};
  EXPECT_EQ(Started(minder, command).wait(kLongMinding), (Exit{7, false}));
}

TEST_F(CompareMinder, NothingOutlivesItsMinder) {
  std::optional<Minder> minder(std::in_place, Ending::kill);
  (void)minder->start(saying("setsid sh -c 'sleep 1000; :' & echo; exec sleep 1000"));
  close_ours();
  EXPECT_TRUE(says_something());
  EXPECT_FALSE(is_closed_within(milliseconds(0)));
  minder.reset();  // all that it sees of our end, too
  EXPECT_TRUE(is_closed_within(milliseconds(0)));
}

TEST_F(CompareMinder, WhatIsAskedCanTakeAwayWhatItMade) {
  const TemporaryFolder folder(temporary_root());
  const fs::path made = folder.path() / "made";
  const Minder minder(Ending::ask);
  const std::string script = "trap 'rm " + made.string() + "; exit' TERM; : >" + made.string() +
                             "; echo; sleep 1000 & wait";
  std::optional<Started> started = start(minder, script);
  EXPECT_TRUE(says_something());
  EXPECT_TRUE(fs::exists(made));
  started.reset();
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(CompareMinder, WhatIsAskedIsAskedWhenTheMinderEnds) {
  std::optional<Minder> minder(std::in_place, Ending::ask);
  (void)minder->start(saying("trap 'echo asked; exit' TERM; echo; sleep 1000 & wait"));
  close_ours();
  EXPECT_TRUE(says_something());
  minder.reset();
  EXPECT_TRUE(says_something());
}

}  // namespace
}  // namespace mlenv::compare
