// Link's words: frames of the keeper's protocol, from socket to port and back.
#include "runner/vm/link.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "runner/engine/keeper/send.hpp"
#include "runner/engine/keeper/whole.hpp"
#include "runner/vm/link_parts.hpp"

namespace mlenv::vm {
namespace {

using keeper::Head;
using keeper::read_whole;

constexpr std::int64_t kKillGrace = 8'000;  // milliseconds

Head head_of(std::string_view word) { return value_of<Head>(word); }

}  // namespace

/// A frame of the keeper's protocol, with its head.
struct Link::Word {
  std::string bytes;
  std::array<int, keeper::kMostFiles> files{-1, -1, -1};
  std::size_t file_count = 0;

  Word() = default;
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  ~Word() {
    for (int& fd : files) close_fd(fd);
  }
  /// False when the other end is gone. Whoever writes one writes it whole.
  bool receive(int socket) {
    Head head;
    std::array<char, CMSG_SPACE(sizeof(int) * keeper::kMostFiles)> control{};
    iovec part{&head, sizeof head};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t count = 0;
    while ((count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL)) < 0 &&
           errno == EINTR) {
    }
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr && count > 0;
         one = CMSG_NXTHDR(&message, one)) {
      if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
      file_count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      std::memcpy(files.data(), CMSG_DATA(one), file_count * sizeof(int));
    }
    if (count != static_cast<ssize_t>(sizeof head) || head.bytes > keeper::kMostBytes) return false;
    bytes = bytes_of(head);
    bytes.resize(sizeof head + head.bytes);
    return read_whole(socket, bytes.data() + sizeof head, head.bytes);
  }
};

/// With its head.
void Link::tell(int socket, std::string_view bytes, const std::vector<int>& files) {
  (void)keeper::send_frame(socket, head_of(bytes), bytes.substr(sizeof(Head)), files);
}

void Link::hear_socket(std::uint16_t number) {
  Channel& channel = channels_[number];
  Word word;
  if (!word.receive(channel.socket)) return close_channel(number);
  pass_on(number, channel, word);
}

/// What this side's other end said, to the port.
void Link::pass_on(std::uint16_t number, Channel& channel, Word& word) {
  const Head head = head_of(word.bytes);
  const std::string_view content = std::string_view(word.bytes).substr(sizeof head);
  if (head.kind == keeper::Word::channel) {
    // Numbers come round again; some are still in use.
    while (channels_.contains(next_)) ++next_;
    const std::uint16_t other = next_++;
    channels_[other].socket = std::exchange(word.files[0], -1);
    return send_of(other, channels_[other], Kind::open);
  }
  if (head.kind == keeper::Word::signal && value_of<std::int32_t>(content) == SIGKILL) {
    channel.in_hurry = true;
    if (number == 0 && side_ == Side::host) give_up_at_ = now_ms() + kKillGrace;
  }
  if (head.kind == keeper::Word::start) {
    ++channel.generation;
    restart_streams(channel);
    for (std::size_t i = 0; i < word.file_count; ++i) {
      attach(channel.streams[i], std::exchange(word.files[i], -1), i == 0);
    }
  }
  if (head.kind == keeper::Word::started && word.file_count == 1) {
    const int master = std::exchange(word.files[0], -1);
    set_nonblocking(master);
    attach(channel.streams[0], ::fcntl(master, F_DUPFD_CLOEXEC, 3), false);
    attach(channel.streams[1], master, true);
  }
  if (head.kind == keeper::Word::ended) {
    // What it wrote lies in the pipes by now; what others write later need not be waited for.
    for (Stream& stream : channel.streams) {
      int waiting = 0;
      const bool counts = stream.is_source && stream.fd >= 0 && ::isatty(stream.fd) == 0 &&
                          ::ioctl(stream.fd, FIONREAD, &waiting) == 0;
      stream.owed = counts ? static_cast<std::uint64_t>(waiting) : 0;
    }
    if (hooks_.memory_kills) send(Kind::memory, hooks_.memory_kills());
    channel.held = word.bytes;
    return release_held(number, channel);
  }
  send_of(number, channel, Kind::word, word.bytes, word.file_count);
}

void Link::release_held(std::uint16_t number, Channel& channel) {
  if (channel.held.empty()) return;
  const bool waits =
      std::any_of(channel.streams.begin(), channel.streams.end(), [&](const Stream& one) {
        return one.fd >= 0 &&
               (one.is_source ? one.owed > 0 : side_ == Side::host && !one.buffer.empty());
      });
  if (waits && !channel.in_hurry) return;
  const std::string word = std::exchange(channel.held, {});
  if (side_ == Side::host) {
    if (number == 0) give_up_at_.reset();
    tell(channel.socket, word, {});
  } else {
    send_of(number, channel, Kind::word, word);
  }
}

/// What the port's other side passed on.
void Link::deliver(std::uint16_t number, Channel& channel, const FrameHead& head,
                   const std::string& bytes) {
  const Head word = head_of(bytes);
  is_broken_ = bytes.size() != sizeof word + word.bytes;
  if (is_broken_) return;
  const std::string_view content = std::string_view(bytes).substr(sizeof word);
  // What is asked is asked by mlenv alone; a guest that asks is none of ours.
  is_broken_ = side_ == Side::host && word.kind < keeper::Word::hello;
  if (is_broken_) return;
  switch (word.kind) {
    case keeper::Word::start:
      channel.generation = head.generation;
      restart_streams(channel);
      return deliver_start(channel, bytes, head.stream);
    case keeper::Word::started:
      if (head.stream == 0) break;
      return deliver_started(channel, bytes);
    case keeper::Word::ended:
      channel.held = bytes;
      return release_held(number, channel);
    case keeper::Word::hello: {
      // Its root cannot come here; the stage looks at the image by itself.
      const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      tell(channel.socket, bytes, {nothing});
      ::close(nothing);
      return;
    }
    case keeper::Word::signal:
      if (value_of<std::int32_t>(content) == SIGKILL) channel.in_hurry = true;
      break;
    default:
      break;
  }
  tell(channel.socket, bytes, {});
}

/// In the guest: pipes in the place of the files that stayed on the host.
void Link::deliver_start(Channel& channel, const std::string& bytes, std::size_t files) {
  if (hooks_.before_start) std::exchange(hooks_.before_start, {})();
  std::vector<int> theirs;
  for (std::size_t i = 0; i < files && i < channel.streams.size(); ++i) {
    std::array<int, 2> pipe{-1, -1};
    (void)::pipe2(pipe.data(), O_CLOEXEC);
    const bool is_input = i == 0;
    const int ours = pipe[is_input ? 1 : 0];
    set_nonblocking(ours);
    attach(channel.streams[i], ours, !is_input);
    theirs.push_back(pipe[is_input ? 0 : 1]);
  }
  tell(channel.socket, bytes, theirs);
  for (int& fd : theirs) close_fd(fd);
}

/// On the host: a terminal that only passes bytes on; the guest's own does the rest.
void Link::deliver_started(Channel& channel, const std::string& bytes) {
  restart_streams(channel);
  int master = -1;
  int slave = -1;
  if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0)
    return tell(channel.socket, bytes, {});
  termios raw{};
  ::tcgetattr(slave, &raw);
  ::cfmakeraw(&raw);
  ::tcsetattr(slave, TCSANOW, &raw);
  (void)::fcntl(slave, F_SETFD, FD_CLOEXEC);
  watch_size(channel, slave);
  set_nonblocking(slave);
  attach(channel.streams[0], ::fcntl(slave, F_DUPFD_CLOEXEC, 3), true);
  attach(channel.streams[1], slave, false);
  tell(channel.socket, bytes, {master});
  ::close(master);
}

}  // namespace mlenv::vm
