#pragma once
// mlenv's side of a frame: read and written piece by piece, with an end. What is at the other end
// runs in a container, whose root can stop it, trace it, and speak in its place.
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

#include "base/handle.hpp"
#include "runner/engine/keeper/protocol.hpp"
#include "runner/engine/keeper/send.hpp"

namespace mlenv::keeper {

using Clock = std::chrono::steady_clock;

/// Until there is something to read (POLLIN) or room to write (POLLOUT); false: not in time.
inline bool wait_for(int socket, short what, Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    constexpr std::int64_t kLongest = 1'000'000;
    pollfd one{socket, what, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left, kLongest)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

/// All of `to`, and the one file that may come with it. False: the other side is gone, or has not
/// said all of it in time.
inline bool read_by(int socket, std::span<char> to, Clock::time_point until, Fd* file = nullptr) {
  while (!to.empty()) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{to.data(), to.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file != nullptr) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
    }
    const ssize_t count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      if (!wait_for(socket, POLLIN, until)) return false;
      continue;
    }
    if (count <= 0) return false;
    const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
        rights->cmsg_len == CMSG_LEN(sizeof(int))) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
      *file = Fd{fd};
    }
    to = to.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

/// A frame; the head alone carries files (at most kMostFiles). False as read_by.
inline bool send_by(int socket, Head head, std::span<const char> bytes, std::span<const int> files,
                    Clock::time_point until) {
  const HeadMessage message{head, files};
  // So few bytes are taken whole, or not at all.
  while (::sendmsg(socket, message.get(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_for(socket, POLLOUT, until)) return false;
  }
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      if (!wait_for(socket, POLLOUT, until)) return false;
      continue;
    }
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace mlenv::keeper
