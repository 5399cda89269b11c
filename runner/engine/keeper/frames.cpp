#include "runner/engine/keeper/frames.hpp"

#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>

#include "runner/engine/keeper/send.hpp"
#include "runner/engine/keeper/whole.hpp"

namespace mlenv::keeper {
namespace {

void take_files(msghdr& message, Frame& frame) {
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    frame.file_count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(frame.files.data(), CMSG_DATA(one), frame.file_count * sizeof(int));
  }
}

}  // namespace

Frame::~Frame() {
  std::free(bytes);  // NOLINT: no C++ library here
  for (const int fd : files) {
    if (fd >= 0) ::close(fd);
  }
}

bool receive(int fd, Frame& frame) {
  std::array<char, CMSG_SPACE(sizeof(int) * kMostFiles)> control{};
  iovec part{&frame.head, sizeof frame.head};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t count = 0;
  while ((count = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (count <= 0) return false;
  take_files(message, frame);
  auto* const head = reinterpret_cast<char*>(&frame.head);  // NOLINT: its bytes
  const auto had = static_cast<std::size_t>(count);
  if (had < sizeof frame.head && !read_whole(fd, head + had, sizeof frame.head - had)) return false;
  if (frame.head.bytes > kMostBytes) return false;
  frame.bytes = static_cast<char*>(std::malloc(frame.head.bytes + 1));  // NOLINT: no C++ library
  return frame.bytes != nullptr && read_whole(fd, frame.bytes, frame.head.bytes);
}

void say(int fd, Word kind, std::span<const char> bytes, int file) {
  const Head head{static_cast<std::uint32_t>(bytes.size()), kind};
  (void)send_frame(fd, head, bytes, {&file, file >= 0 ? std::size_t{1} : 0});
}

void answer(int fd, int error, Failed::Step step) {
  if (error == 0) return say(fd, Word::done);
  say_value(fd, Word::failed, Failed{error, step});
}

}  // namespace mlenv::keeper
