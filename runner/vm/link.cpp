#include "runner/vm/link.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <utility>

#include "runner/vm/link_parts.hpp"

namespace mlenv::vm {
namespace {

constexpr std::size_t kMostUnsentBytes = std::size_t{512} << 10U;
constexpr std::int64_t kByeGrace = 20'000;
// A guest may tell of itself as often as it likes.
constexpr std::size_t kMostNote = 1024;
constexpr std::size_t kMostNotes = std::size_t{64} << 10U;

}  // namespace

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

void Link::note(std::string_view kind, std::string_view text) {
  std::string line{kind};
  line += text.substr(0, kMostNote);
  std::replace(line.begin(), line.end(), '\n', ' ');  // else it would be notes of other kinds
  line += '\n';
  if (ends_.notes < 0 || line == last_note_ || noted_bytes_ > kMostNotes) return;
  noted_bytes_ += line.size();
  (void)!::write(ends_.notes, line.data(), line.size());
  last_note_ = std::move(line);
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
    tell(channels_[0].socket, bytes_of(keeper::Head{0, keeper::Word::channel}), {ends[1]});
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
  const bool room = out_.size() < kMostUnsentBytes;
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
