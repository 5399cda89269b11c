#include "cli/folder_events.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <array>

namespace mlenv::cli {

FolderEvents::FolderEvents() : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

void FolderEvents::add(const fs::path& folder) const {
  if (fd_) (void)::inotify_add_watch(fd_.get(), folder.c_str(), IN_MODIFY | IN_CREATE);
}

void FolderEvents::wait() const {
  constexpr int kLongest = 250;
  pollfd event{fd_ ? fd_.get() : -1, POLLIN, 0};
  (void)::poll(&event, 1, kLongest);
  std::array<char, 4096> buffer{};
  while (fd_ && ::read(fd_.get(), buffer.data(), buffer.size()) > 0) {
  }
}

}  // namespace mlenv::cli
