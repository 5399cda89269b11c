#include "runner/vm/link.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

namespace mlenv::vm {
namespace {

using keeper::Head;

constexpr std::size_t kChunk = std::size_t{32} << 10U;
constexpr std::size_t kMostWaiting = std::size_t{512} << 10U;
constexpr std::int64_t kKillGrace = 10'000;  // milliseconds
constexpr std::int64_t kByeGrace = 20'000;

std::int64_t now_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  constexpr std::int64_t kThousand = 1000;
  constexpr std::int64_t kMillion = 1'000'000;
  return static_cast<std::int64_t>(time.tv_sec) * kThousand + time.tv_nsec / kMillion;
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

void set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0) (void)::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

template <class Value>
std::string bytes_of(const Value& value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class Value>
Value value_of(std::string_view bytes) {
  Value value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

bool read_whole(int fd, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = ::read(fd, to, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

Head head_of(std::string_view word) { return value_of<Head>(word); }

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

Link::Link(Side side, LinkEnds ends, LinkHooks hooks)
    : side_(side), ends_(ends), hooks_(std::move(hooks)) {
  set_nonblocking(ends_.port);
  channels_[0].socket = ends_.socket;
}

Link::~Link() {
  for (auto& [number, channel] : channels_) {
    close_streams(channel);
    close_fd(channel.socket);
  }
}

void Link::send_frame(const FrameHead& head, std::string_view bytes) {
  out_ += bytes_of(head);
  out_ += bytes;
}

void Link::send(Kind kind, std::string_view bytes) {
  FrameHead head;
  head.bytes = static_cast<std::uint32_t>(bytes.size());
  head.kind = kind;
  send_frame(head, bytes);
}

void Link::send_of(std::uint16_t number, const Channel& channel, Kind kind, std::string_view bytes,
                   std::size_t stream) {
  send_frame({static_cast<std::uint32_t>(bytes.size()), channel.generation, number, kind,
              static_cast<std::uint8_t>(stream)},
             bytes);
}

bool Link::read_port() {
  std::array<char, kChunk> buffer{};
  const ssize_t count = ::read(ends_.port, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  in_.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

bool Link::write_port() {
  const ssize_t count = ::write(ends_.port, out_.data(), std::min(out_.size(), kChunk));
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  out_.erase(0, static_cast<std::size_t>(count));
  return true;
}

void Link::flush() {
  while (!out_.empty()) {
    pollfd port{ends_.port, POLLOUT, 0};
    if (::poll(&port, 1, -1) < 0 && errno != EINTR) return;
    if ((port.revents & (POLLERR | POLLHUP)) != 0 || !write_port()) return;
  }
}

std::optional<std::string> Link::take_frame(FrameHead& head) {
  if (in_.size() < sizeof head || is_broken_) return std::nullopt;
  head = value_of<FrameHead>(in_);
  is_broken_ = head.bytes > kMostFrame;
  if (in_.size() - sizeof head < head.bytes) return std::nullopt;
  std::string bytes = in_.substr(sizeof head, head.bytes);
  in_.erase(0, sizeof head + head.bytes);
  return bytes;
}

std::optional<std::string> Link::expect(Kind kind) {
  FrameHead head;
  while (true) {
    if (std::optional<std::string> bytes = take_frame(head)) {
      return head.kind == kind ? bytes : std::nullopt;
    }
    pollfd port{ends_.port, POLLIN, 0};
    if (::poll(&port, 1, -1) < 0 && errno != EINTR) return std::nullopt;
    if ((port.revents & POLLIN) != 0 ? !read_port() : port.revents != 0) return std::nullopt;
  }
}

void Link::note(std::string_view kind, std::string_view text) const {
  std::string line{kind};
  line.append(text).push_back('\n');
  if (ends_.notes >= 0) (void)!::write(ends_.notes, line.data(), line.size());
}

// --- streams -------------------------------------------------------------------------------------

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
    stream.credit += value_of<std::uint32_t>(bytes);
  }
}

// --- words ---------------------------------------------------------------------------------------

void Link::tell(int socket, std::string_view bytes, const std::vector<int>& files) {
  std::array<char, CMSG_SPACE(sizeof(int) * keeper::kMostFiles)> control{};
  std::string head{bytes.substr(0, sizeof(Head))};
  iovec part{head.data(), head.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    const std::size_t size = sizeof(int) * files.size();
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(rights), files.data(), size);
  }
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return;
  bytes.remove_prefix(head.size());
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
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

void Link::hear_frame(const FrameHead& head, const std::string& bytes) {
  if (head.kind == Kind::failed) return note(kNoteFailed, bytes);
  if (head.kind == Kind::memory) return note(kNoteMemory, bytes);
  if (head.kind == Kind::bye) {
    said_bye_ = true;
    return;
  }
  if (head.kind == Kind::open) {
    std::array<int, 2> ends{};
    if (side_ == Side::host) return;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    channels_[head.channel].socket = ends[0];
    tell(channels_[0].socket, bytes_of(Head{0, keeper::Word::channel}), {ends[1]});
    ::close(ends[1]);
    return;
  }
  const auto found = channels_.find(head.channel);
  if (found == channels_.end()) return;
  Channel& channel = found->second;
  if (head.kind == Kind::close) {
    close_streams(channel);
    close_fd(channel.socket);
    if (head.channel == 0) finished_ = true;
    channels_.erase(found);
  } else if (head.kind == Kind::word) {
    deliver(head.channel, channel, head, bytes);
  } else if (head.kind == Kind::size && side_ == Side::guest &&
             bytes.size() == 2 * sizeof(unsigned short)) {
    const auto both = value_of<std::array<unsigned short, 2>>(bytes);
    const winsize size{both[0], both[1], 0, 0};
    ::ioctl(channel.streams[0].fd, TIOCSWINSZ, &size);
  } else {
    hear_stream(head, bytes, channel);
  }
}

void Link::close_channel(std::uint16_t number) {
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  send_of(number, found->second, Kind::close);
  close_streams(found->second);
  close_fd(found->second.socket);
  channels_.erase(found);
  if (number != 0) return;
  finished_ = true;
  if (side_ == Side::host) give_up_at_ = now_ms() + kByeGrace;
}

// --- the loop ------------------------------------------------------------------------------------

bool Link::is_over() const {
  if (side_ == Side::guest) return finished_;
  return (finished_ && said_bye_) || (give_up_at_ && now_ms() >= *give_up_at_);
}

int Link::wait_ms() const {
  if (!give_up_at_) return -1;
  return static_cast<int>(std::max<std::int64_t>(0, *give_up_at_ - now_ms()));
}

/// The port; then for each channel its socket, its terminal's size and its streams.
std::vector<pollfd> Link::polled() const {
  const auto wanted = static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT);
  std::vector<pollfd> fds{{ends_.port, wanted, 0}};
  const bool room = out_.size() < kMostWaiting;
  for (const auto& [number, channel] : channels_) {
    fds.push_back({channel.socket, POLLIN, 0});
    fds.push_back({channel.sizes_fd, POLLIN, 0});
    for (const Stream& one : channel.streams) {
      const bool active = one.is_source ? one.credit > 0 && room : !one.buffer.empty();
      fds.push_back(
          {active ? one.fd : -1, static_cast<short>(one.is_source ? POLLIN : POLLOUT), 0});
    }
  }
  return fds;
}

bool Link::turn() {
  std::vector<std::uint16_t> numbers;
  for (const auto& [number, channel] : channels_) numbers.push_back(number);
  std::vector<pollfd> fds = polled();
  if (::poll(fds.data(), fds.size(), wait_ms()) < 0) return errno == EINTR;
  std::size_t at = 1;
  for (const std::uint16_t number : numbers) {
    const pollfd* const here = &fds[at];
    constexpr std::size_t kBefore = 2;
    at += kBefore + keeper::kMostFiles;
    Channel& channel = channels_[number];
    for (std::size_t i = 0; i < channel.streams.size(); ++i) {
      if (here[kBefore + i].revents == 0 || channel.streams[i].fd < 0) continue;
      channel.streams[i].is_source ? read_stream(number, channel, i)
                                   : write_stream(number, channel, i);
    }
    if (here[1].revents != 0 && channel.sizes_fd >= 0) tell_size(number, channel);
    release_held(number, channel);
    if (here[0].revents != 0) hear_socket(number);
  }
  if ((fds[0].revents & POLLOUT) != 0 && !write_port()) return false;
  if ((fds[0].revents & POLLIN) != 0) {
    if (!read_port()) return false;
  } else if ((fds[0].revents & (POLLHUP | POLLERR)) != 0) {
    return false;
  }
  FrameHead head;
  while (const std::optional<std::string> bytes = take_frame(head)) hear_frame(head, *bytes);
  return !is_broken_;
}

bool Link::run() {
  while (!is_over()) {
    if (!turn()) return false;
  }
  return true;
}

}  // namespace mlenv::vm
