// Waits for a guest: what ends them, and what a guest that tells too much can fill.
#include <gtest/gtest.h>

#include <sys/signalfd.h>
#include <sys/socket.h>
#include <array>
#include <csignal>
#include <cstring>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/engine/keeper_client.hpp"
#include "runner/vm/guest_wait.hpp"
#include "runner/vm/link.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::test {
namespace {

constexpr std::chrono::milliseconds kLongWait{600'000};
constexpr std::chrono::milliseconds kShort{150};

/// Signals of this process that wait, as a run's stage has them; none is left.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGUSR1}) sigaddset(&set_, number);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
    fd_ = Fd{::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK)};
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() {
    const timespec none{};
    while (::sigtimedwait(&set_, nullptr, &none) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  int fd() const { return fd_.get(); }

 private:
  sigset_t set_{};
  sigset_t before_{};
  Fd fd_;
};

TEST(GuestWait, EndsWithAnAnswerOrTheGuest) {
  Pipe answer = make_pipe();
  Pipe qemu = make_pipe();
  GuestWait wait{answer.read_end.get(), {qemu.read_end.get(), -1}, {}, kShort};
  EXPECT_EQ(wait_for_guest(wait), mlenv::Heard::nothing);
  wait.patience = kLongWait;
  qemu.write_end.reset();
  EXPECT_EQ(wait_for_guest(wait), mlenv::Heard::end);
  // What it said before that still counts.
  ASSERT_EQ(write_quietly(answer.write_end.get(), "x"), 1);
  EXPECT_EQ(wait_for_guest(wait), mlenv::Heard::answer);
}

TEST(GuestWait, EndsWhenNobodyWantsTheRunAnyMore) {
  const Pipe answer = make_pipe();
  Pipe mlenv = make_pipe();
  const GuestWait wait{answer.read_end.get(), {-1, -1}, {mlenv.read_end.get(), -1}, kLongWait};
  mlenv.write_end.reset();
  EXPECT_EQ(wait_for_guest(wait), mlenv::Heard::nobody_waits);
}

TEST(GuestWait, EndsByASignalThatEndsPrograms) {
  const Pipe answer = make_pipe();
  const HeldSignals signals;
  GuestWait wait{answer.read_end.get(), {-1, -1}, {-1, signals.fd()}, kShort};
  EXPECT_EQ(waiting_end_signal(), 0);
  ASSERT_EQ(std::raise(SIGUSR1), 0);
  EXPECT_EQ(wait_for_guest(wait), mlenv::Heard::nothing);
  wait.patience = kLongWait;
  ASSERT_EQ(std::raise(SIGINT), 0);
  EXPECT_EQ(wait_for_guest(wait), mlenv::Heard::signal);
  EXPECT_EQ(waiting_end_signal(), SIGINT);
  // Both wait on, for the command.
  signalfd_siginfo info{};
  EXPECT_EQ(::read(signals.fd(), &info, sizeof info), static_cast<ssize_t>(sizeof info));
  EXPECT_EQ(::read(signals.fd(), &info, sizeof info), static_cast<ssize_t>(sizeof info));
}

TEST(GuestWait, AKeeperThatIsNotWaitedForCountsAsGone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Fd silent{ends[1]};
  Keeper keeper{Fd{ends[0]}};
  int asked = 0;
  keeper.before_waiting([&] {
    ++asked;
    return false;
  });
  EXPECT_EQ(code_of([&] { (void)keeper.hello(); }), Keeper::kGone);
  EXPECT_EQ(code_of([&] { keeper.write("/a", "x", {}); }), Keeper::kGone);
  EXPECT_FALSE(keeper.reset({}));
  EXPECT_EQ(asked, 3);
}

template <class Value>
void add(std::string& bytes, const Value& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::string frame_of(vm::Kind kind, const std::string& text) {
  std::string all;
  vm::FrameHead head;
  head.bytes = static_cast<std::uint32_t>(text.size());
  head.kind = kind;
  add(all, head);
  return all + text;
}

/// What a guest sends that tells `count` times that its memory was too little, each time another
/// number.
std::string memory_frames(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += frame_of(vm::Kind::memory, std::to_string(i));
  return all;
}

std::string notes_of(const std::string& sent) {
  const TemporaryFolder folder{temporary_root()};
  write_file(folder.path() / "port", sent);
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Fd stage{ends[0]};
  const Fd port = open_file(folder.path() / "port", O_RDONLY);
  const Fd notes = open_file(folder.path() / "notes", O_WRONLY | O_CREAT | O_APPEND, 0600);
  vm::Link link{vm::Side::host, {port.get(), ends[1], notes.get()}};
  EXPECT_FALSE(link.run());  // the port ends
  return read_file(folder.path() / "notes");
}

TEST(Link, AGuestCannotFillTheHostWithWhatItTellsOfItself) {
  EXPECT_EQ(notes_of(memory_frames(2)), "memory 0\nmemory 1\n");
  EXPECT_EQ(notes_of(memory_frames(1) + memory_frames(1)), "memory 0\n");
  constexpr int kMany = 20'000;
  const std::string many = notes_of(memory_frames(kMany));
  EXPECT_GT(many.size(), std::size_t{60} << 10U);
  EXPECT_LT(many.size(), std::size_t{70} << 10U);
}

TEST(Link, ANoteOfAGuestIsOneNote) {
  EXPECT_EQ(notes_of(frame_of(vm::Kind::failed, "no disk\noutput 28")),
            "failed no disk output 28\n");
}

}  // namespace
}  // namespace mlenv::test
