#include "runner/engine/keeper/patient.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <cstdlib>
#include <string>

#include "base/files.hpp"
#include "base/process.hpp"
#include "runner/engine/keeper_client.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

struct Ends {
  Fd ours;
  Fd theirs;
};

Ends ends() {
  std::array<int, 2> both{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()) != 0) return {};
  return {Fd{both[0]}, Fd{both[1]}};
}

keeper::Clock::time_point patience_end() {
  return keeper::Clock::now() + std::chrono::milliseconds(20);
}

std::string frame_head(std::uint32_t bytes, keeper::Word kind) {
  const keeper::Head head{bytes, kind};
  std::string text(sizeof head, '\0');
  std::memcpy(text.data(), &head, sizeof head);
  return text;
}

TEST(KeeperPatience, HalfAFrameIsNotWaitedForForEver) {
  const Ends link = ends();
  ASSERT_EQ(::send(link.theirs.get(), "abc", 3, 0), 3);
  std::string room(8, '\0');
  EXPECT_FALSE(keeper::read_by(link.ours.get(), room, patience_end()));
  EXPECT_FALSE(keeper::wait_for(link.ours.get(), POLLIN, patience_end()));
  ASSERT_EQ(::send(link.theirs.get(), "abcdefgh", 8, 0), 8);
  EXPECT_TRUE(keeper::read_by(link.ours.get(), room, patience_end()));
  EXPECT_EQ(room, "abcdefgh");
}

TEST(KeeperPatience, NorIsWhoeverReadsNothing) {
  const Ends link = ends();
  const std::string much(std::size_t{16} << 20U, 'x');
  EXPECT_FALSE(keeper::send_by(link.ours.get(),
                               {static_cast<std::uint32_t>(much.size()), keeper::Word::file}, much,
                               {}, patience_end()));
}

TEST(KeeperPatience, AnAnswerIsNoLongerThanAnyIs) {
  Ends link = ends();
  // A frame that says it is large: all of it would have to be kept.
  const std::string head = frame_head(keeper::kMostBytes, keeper::Word::ended);
  ASSERT_EQ(::send(link.theirs.get(), head.data(), head.size(), 0),
            static_cast<ssize_t>(head.size()));
  Keeper client{std::move(link.ours)};
  EXPECT_FALSE(client.ended());
}

TEST(KeeperPatience, AnAnswerOfAnotherKindIsNone) {
  Ends link = ends();
  const std::string words =
      frame_head(0, keeper::Word::done) + frame_head(3, keeper::Word::failed) + "abc";
  ASSERT_EQ(::send(link.theirs.get(), words.data(), words.size(), 0),
            static_cast<ssize_t>(words.size()));
  Keeper client{std::move(link.ours)};
  EXPECT_FALSE(client.ended());
  EXPECT_EQ(code_of([&] { client.set_mode("/x", 0755); }), "run-failed");
}

/// Whether a terminal is had of a keeper that says it has started the command, and sends `file`.
bool has_terminal(bool asked, int file) {
  Ends link = ends();
  EXPECT_TRUE(keeper::send_by(link.theirs.get(), {0, keeper::Word::started}, {}, {&file, 1},
                              patience_end()));
  KeptProcess process;
  process.terminal = asked;
  keeper::Failed problem;
  Keeper client{std::move(link.ours)};
  const std::optional<Keeper::Started> started = client.start(process, problem);
  EXPECT_TRUE(started);
  return started && started->master;
}

TEST(KeeperPatience, OnlyATerminalThatWasAskedForIsTaken) {
  const Fd terminal{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  const Fd null = open_file("/dev/null");
  ASSERT_TRUE(terminal);
  EXPECT_TRUE(has_terminal(true, terminal.get()));
  EXPECT_FALSE(has_terminal(false, terminal.get()));
  EXPECT_FALSE(has_terminal(true, null.get()));
}

TEST(KeeperPatience, AFileComesWithItsHead) {
  Ends link = ends();
  const Fd null = open_file("/dev/null");
  const int file = null.get();
  ASSERT_TRUE(
      keeper::send_by(link.theirs.get(), {0, keeper::Word::hello}, {}, {&file, 1}, patience_end()));
  Keeper client{std::move(link.ours)};
  EXPECT_TRUE(client.hello());
}

}  // namespace
}  // namespace mlenv
