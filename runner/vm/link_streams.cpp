// Link's streams: files of this side and the bytes that go through them.
#include "runner/vm/link.hpp"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "runner/vm/link_parts.hpp"

namespace mlenv::vm {
namespace {

/// How much may be written at once without waiting (pipe(7): so much is taken whole or not at all).
std::size_t portion(int fd) {
  struct stat status {};
  const bool plain = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  constexpr std::size_t kOfPipe = 4096;
  return plain ? kChunk : kOfPipe;
}

/// The whole life of a terminal's session leader: a byte for each change of its size.
[[noreturn]] void be_size_watcher(int terminal, int told) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  sigset_t resized;
  sigemptyset(&resized);
  sigaddset(&resized, SIGWINCH);
  ::pthread_sigmask(SIG_SETMASK, &resized, nullptr);
  if (::ioctl(terminal, TIOCSCTTY, 0) != 0) ::_exit(1);
  // Kept: only what it needs. The terminal's last other end must be able to go.
  ::dup2(told, 0);
  ::close_range(1, ~0U, 0);
  int number = 0;
  while (::sigwait(&resized, &number) == 0 && ::write(0, "", 1) == 1) {
  }
  ::_exit(0);
}

}  // namespace

void Link::attach(Stream& stream, int fd, bool is_source) {
  stream.fd = fd;
  stream.is_source = is_source;
  stream.credit = is_source ? kWindow : 0;
}

void Link::close_stream(Stream& stream) {
  close_fd(stream.fd);
  stream = {};
}

void Link::close_streams(Channel& channel) {
  for (Stream& stream : channel.streams) close_stream(stream);
  close_fd(channel.sizes_fd);
  if (channel.sizes <= 0) return;
  ::kill(channel.sizes, SIGKILL);
  while (::waitpid(channel.sizes, nullptr, 0) < 0 && errno == EINTR) {
  }
  channel.sizes = -1;
}

void Link::restart_streams(Channel& channel) {
  close_streams(channel);
  channel.in_hurry = false;
  channel.held.clear();
}

/// One that all has been written to. With a terminal's output its input ends, too.
void Link::end_stream(Channel& channel, std::size_t index) {
  if (channel.sizes > 0) return close_streams(channel);
  close_stream(channel.streams[index]);
}

void Link::read_stream(std::uint16_t number, Channel& channel, std::size_t index) {
  Stream& stream = channel.streams[index];
  std::array<char, kChunk> buffer{};
  const ssize_t count =
      ::read(stream.fd, buffer.data(), std::min<std::size_t>(buffer.size(), stream.credit));
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) {
    send_of(number, channel, Kind::end, {}, index);
    return close_stream(stream);
  }
  const auto got = static_cast<std::uint32_t>(count);
  stream.credit -= got;
  stream.owed -= std::min<std::uint64_t>(stream.owed, got);
  send_of(number, channel, Kind::data, {buffer.data(), got}, index);
}

void Link::write_stream(std::uint16_t number, Channel& channel, std::size_t index) {
  Stream& stream = channel.streams[index];
  const std::size_t most = std::min(stream.buffer.size(), portion(stream.fd));
  const ssize_t count = ::write(stream.fd, stream.buffer.data(), most);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count < 0) {
    if (errno != EPIPE && number == 0 && index == STDOUT_FILENO) {
      note(kNoteOutput, std::to_string(errno));
    }
    send_of(number, channel, Kind::gone, {}, index);
    return close_stream(stream);
  }
  const auto done = static_cast<std::uint32_t>(count);
  stream.buffer.erase(0, done);
  send_of(number, channel, Kind::more, bytes_of(done), index);
  if (stream.buffer.empty() && stream.ending) end_stream(channel, index);
}

void Link::tell_size(std::uint16_t number, Channel& channel) {
  std::array<char, 64> buffer{};
  if (::read(channel.sizes_fd, buffer.data(), buffer.size()) <= 0) close_fd(channel.sizes_fd);
  winsize size{};
  if (::ioctl(channel.streams[0].fd, TIOCGWINSZ, &size) != 0) return;
  send_of(number, channel, Kind::size, bytes_of(std::array{size.ws_row, size.ws_col}));
}

void Link::watch_size(Channel& channel, int terminal) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return;
  channel.sizes = ::fork();
  if (channel.sizes == 0) be_size_watcher(terminal, pipe[1]);
  ::close(pipe[1]);
  channel.sizes_fd = pipe[0];
}

void Link::hear_stream(const FrameHead& head, const std::string& bytes, Channel& channel) {
  if (head.generation != channel.generation || head.stream >= channel.streams.size()) return;
  Stream& stream = channel.streams[head.stream];
  if (stream.fd < 0) return;
  if (head.kind == Kind::data && !stream.is_source) {
    is_broken_ = stream.buffer.size() + bytes.size() > kWindow;
    stream.buffer += bytes;
  } else if (head.kind == Kind::end && !stream.is_source) {
    stream.ending = true;
    if (stream.buffer.empty()) end_stream(channel, head.stream);
  } else if (head.kind == Kind::gone && stream.is_source) {
    close_stream(stream);
  } else if (head.kind == Kind::more && stream.is_source) {
    const auto more = value_of<std::uint32_t>(bytes);
    is_broken_ = more > kWindow - std::min(stream.credit, kWindow);
    if (!is_broken_) stream.credit += more;
  }
}

}  // namespace mlenv::vm
