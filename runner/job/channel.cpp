#include "runner/job/channel.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <vector>

#include "base/process.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kRoomBytes = std::size_t{1} << 20;
constexpr std::size_t kChannelReadBytes = std::size_t{256} << 10;
constexpr std::size_t kMostHeardAtOnce = std::size_t{1} << 20;

void set_nonblocking(const Fd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    throw os_error(errno, "cannot use the stream of a node");
  }
}

}  // namespace

Channel::Channel(NodeStream stream, bool after_marker)
    : stream_(std::move(stream)), reader_(after_marker) {
  set_nonblocking(stream_.to);
  set_nonblocking(stream_.from);
}

void Channel::say_raw(std::string_view bytes) {
  const std::lock_guard lock{mutex_};
  out_.append(bytes);
  last_said_ = Clock::now();
}

void Channel::say(const Message& message) { say_raw(render_message(message)); }

std::size_t Channel::queued() const {
  const std::lock_guard lock{mutex_};
  return out_.size() - sent_;
}

bool Channel::has_room() const { return queued() < kRoomBytes; }

Channel::Clock::time_point Channel::last_said() const {
  const std::lock_guard lock{mutex_};
  return last_said_;
}

void Channel::close() {
  const std::lock_guard lock{mutex_};
  stream_ = {};
}

void Channel::beat(std::chrono::milliseconds after) {
  const std::lock_guard lock{mutex_};
  if (!stream_.to || Clock::now() - last_said_ < after) return;
  // What waits says as much; and nothing piles up where nobody reads.
  if (sent_ == out_.size()) out_.append(render_message(Beat{}));
  last_said_ = Clock::now();
  (void)send_queued();  // the owner learns it, should the other side be gone
}

bool Channel::send() {
  const std::lock_guard lock{mutex_};
  return send_queued();
}

bool Channel::send_queued() {
  while (stream_.to && sent_ < out_.size()) {
    const ssize_t count = write_quietly(stream_.to.get(), std::string_view(out_).substr(sent_));
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN;
    }
    sent_ += static_cast<std::size_t>(count);
    // Moved down only now and then, so that much of it costs little.
    if (sent_ == out_.size() || sent_ >= kRoomBytes) {
      out_.erase(0, sent_);
      sent_ = 0;
    }
  }
  return true;
}

bool Channel::take() {
  std::string buffer(kChannelReadBytes, '\0');
  for (std::size_t taken = 0; stream_.from && taken < kMostHeardAtOnce;) {
    const ssize_t count = ::read(stream_.from.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    last_heard_ = Clock::now();
    reader_.take({buffer.data(), static_cast<std::size_t>(count)});
    taken += static_cast<std::size_t>(count);
    if (static_cast<std::size_t>(count) < buffer.size()) return true;
  }
  return true;
}

}  // namespace mlenv::job
