#include "runner/node/link_flow.hpp"

#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <span>

#include "base/bytes.hpp"

namespace mlenv::job {
namespace {

constexpr char kAnotherRound = 'a';
constexpr char kEnough = 'e';

double link_seconds(LinkClock::time_point from, LinkClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// False: not in time.
bool ready_before(int fd, short events, LinkClock::time_point until) {
  while (LinkClock::now() < until) {
    pollfd one{fd, events, 0};
    if (::poll(&one, 1, milliseconds_until(until)) > 0) return true;
  }
  return false;
}

bool passing(int error_number) { return error_number == EAGAIN || error_number == EINTR; }

/// False: the connection ended, or the time did.
bool send_byte(int fd, char byte, LinkClock::time_point until) {
  while (ready_before(fd, POLLOUT, until)) {
    if (::send(fd, &byte, 1, MSG_NOSIGNAL) == 1) return true;
    if (!passing(errno)) return false;
  }
  return false;
}

std::optional<char> hear(int fd, LinkClock::time_point until) {
  while (ready_before(fd, POLLIN, until)) {
    char byte = 0;
    const ssize_t count = ::read(fd, &byte, 1);
    if (count == 1) return byte;
    if (count == 0 || !passing(errno)) return std::nullopt;
  }
  return std::nullopt;
}

/// As much as goes; false: the connection is over.
bool send_some(int fd, std::span<const std::byte>& left) {
  const ssize_t count = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL);
  if (count < 0) return passing(errno);
  left = left.subspan(static_cast<std::size_t>(count));
  return true;
}

bool receive_some(int fd, ByteSpan& left) {
  const ssize_t count = ::read(fd, left.data(), left.size());
  if (count < 0) return passing(errno);
  left = left.subspan(static_cast<std::size_t>(count));
  return count > 0;
}

/// Both at a time, or each would wait for the others to read.
bool exchange(const RingPlace& place, std::span<const std::byte> out, ByteSpan in,
              LinkClock::time_point until) {
  while (!out.empty() || !in.empty()) {
    if (LinkClock::now() >= until) return false;
    std::array<pollfd, 2> fds{
        {{out.empty() ? -1 : place.next, POLLOUT, 0}, {in.empty() ? -1 : place.before, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), milliseconds_until(until)) < 0) continue;
    if (fds[0].revents != 0 && !send_some(place.next, out)) return false;
    if (fds[1].revents != 0 && !receive_some(place.before, in)) return false;
  }
  return true;
}

class Ring {
 public:
  Ring(const RingPlace& place, std::size_t bytes)
      : place_(place), values_(std::max(bytes / sizeof(float), place.nodes)) {}

  bool reduce(LinkClock::time_point until) {
    const std::size_t count = place_.nodes;
    for (std::size_t step = 0; step + 1 < count; ++step) {
      const std::span<float> into = part(place_.self + 2 * count - step - 1);
      got_.resize(into.size());
      if (!exchange(place_, std::as_bytes(part(place_.self + count - step)),
                    std::as_writable_bytes(std::span(got_)), until)) {
        return false;
      }
      std::transform(into.begin(), into.end(), got_.begin(), into.begin(), std::plus<>{});
    }
    for (std::size_t step = 0; step + 1 < count; ++step) {
      if (!exchange(place_, std::as_bytes(part(place_.self + count + 1 - step)),
                    std::as_writable_bytes(part(place_.self + count - step)), until)) {
        return false;
      }
    }
    return true;
  }

  /// Whole numbers, whose sums floats hold exactly.
  void fill() {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(start(i));
  }
  bool right() const {
    const std::size_t count = place_.nodes;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::size_t sum = count * (i % kPeriod) + count * (count - 1) / 2;
      if (values_[i] != static_cast<float>(sum)) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kPeriod = 7;
  std::size_t start(std::size_t i) const { return i % kPeriod + place_.self; }
  std::span<float> part(std::size_t number) {
    const std::size_t index = number % place_.nodes;
    const std::size_t from = values_.size() * index / place_.nodes;
    return std::span(values_).subspan(from, values_.size() * (index + 1) / place_.nodes - from);
  }

  RingPlace place_;
  std::vector<float> values_;
  std::vector<float> got_;
};

}  // namespace

std::optional<double> round_trip(int fd, LinkClock::time_point until) {
  constexpr int kTimes = 40;
  constexpr std::chrono::milliseconds kSpan{200};
  std::optional<double> least;
  const auto begin = LinkClock::now();
  for (int i = 0; i < kTimes && LinkClock::now() - begin < kSpan; ++i) {
    const auto sent = LinkClock::now();
    if (!send_byte(fd, kAnotherRound, until) || !hear(fd, until)) return least;
    const double seconds = link_seconds(sent, LinkClock::now());
    least = std::min(least.value_or(seconds), seconds);
  }
  (void)send_byte(fd, kEnough, until);
  return least;
}

bool answer_round_trips(int fd, LinkClock::time_point until) {
  while (const std::optional<char> byte = hear(fd, until)) {
    if (*byte == kEnough) return true;
    if (!send_byte(fd, *byte, until)) return false;
  }
  return false;
}

void send_stream(int fd, std::chrono::milliseconds span, LinkClock::time_point until) {
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  constexpr int kShareBeyond = 8;
  const std::vector<std::byte> bytes(kPiece);
  const auto end = std::min(until, LinkClock::now() + span + span / kShareBeyond);
  while (ready_before(fd, POLLOUT, end)) {
    std::span<const std::byte> left{bytes};
    if (!send_some(fd, left)) return;
  }
}

std::optional<double> receive_stream(int fd, std::chrono::milliseconds span,
                                     LinkClock::time_point until) {
  constexpr std::size_t kBuffer = std::size_t{1} << 20;
  constexpr int kLeftOut = 4;
  std::vector<std::byte> buffer(kBuffer);
  std::optional<LinkClock::time_point> first;
  std::optional<LinkClock::time_point> counts_from;  // all that had come until then was read before
  std::uint64_t counted = 0;
  std::uint64_t all = 0;
  LinkClock::time_point last{};
  while (ready_before(fd, POLLIN, first ? std::min(until, *first + span) : until)) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    const auto now = LinkClock::now();
    if (count == 0 || (count < 0 && !passing(errno))) break;
    if (count < 0) continue;
    if (!first) first = last = now;
    if (!counts_from && now - *first >= span / kLeftOut) counts_from = last;
    last = now;
    all += static_cast<std::uint64_t>(count);
    if (counts_from) counted += static_cast<std::uint64_t>(count);
  }
  if (!first) return std::nullopt;
  // On a busy machine this process may have waited for a processor at either end of that time: what
  // came since the last look is there unread then.
  pollfd unread{fd, POLLIN, 0};
  const auto end = ::poll(&unread, 1, 0) > 0 ? last : LinkClock::now();
  if (counted > 0) {
    return static_cast<double>(counted) * kByteBits / link_seconds(*counts_from, end);
  }
  // Next to nothing came, and all of it at first.
  return static_cast<double>(all) * kByteBits /
         std::max(link_seconds(*first, last), std::chrono::duration<double>(span).count());
}

RingResult ring_allreduce(const RingPlace& place, std::size_t bytes, std::size_t times,
                          LinkClock::time_point until) {
  RingResult result;
  Ring ring{place, bytes};
  for (std::size_t i = 0; i <= times; ++i) {
    ring.fill();
    const auto begin = LinkClock::now();
    if (!ring.reduce(until)) return result;
    if (i > 0) result.seconds.push_back(link_seconds(begin, LinkClock::now()));
    result.sums_right = result.sums_right && ring.right();
  }
  return result;
}

}  // namespace mlenv::job
