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

/// A head and the open files that go with it (at most kMostFiles), as sendmsg(2) takes them.
class HeadMessage {
 public:
  HeadMessage(Head head, std::span<const int> files) : head_(head) {
    message_.msg_iov = &part_;
    message_.msg_iovlen = 1;
    if (files.empty()) return;
    message_.msg_control = control_.data();
    message_.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message_);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
  }
  HeadMessage(const HeadMessage&) = delete;
  HeadMessage& operator=(const HeadMessage&) = delete;
  ~HeadMessage() = default;
  const msghdr* get() const { return &message_; }

 private:
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostFiles)> control_{};
  Head head_;
  iovec part_{&head_, sizeof head_};
  msghdr message_{};
};

/// All of it; the head alone carries files (at most kMostFiles). False when the other side is gone:
/// no signal comes of that.
inline bool send_frame(int socket, Head head, std::span<const char> bytes,
                       std::span<const int> files = {}) {
  const HeadMessage message{head, files};
  // So few bytes are taken whole, or not at all.
  while (::sendmsg(socket, message.get(), MSG_NOSIGNAL) < 0) {
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
