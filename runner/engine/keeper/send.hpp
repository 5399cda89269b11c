#pragma once
// A frame of the protocol on its way, with open files. For mlenv, its keeper, and what stands
// between them and a virtual machine; neither of the latter has a library of ours.
#include <sys/socket.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "runner/engine/keeper/protocol.hpp"

namespace mlenv::keeper {

/// All of it; the head alone carries files (at most kMostFiles). False when the other side is gone:
/// no signal comes of that.
inline bool send_frame(int socket, Head head, std::span<const char> bytes,
                       std::span<const int> files = {}) {
  std::array<char, CMSG_SPACE(sizeof(int) * kMostFiles)> control{};
  iovec part{&head, sizeof head};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
  }
  // So few bytes are taken whole, or not at all.
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace mlenv::keeper
