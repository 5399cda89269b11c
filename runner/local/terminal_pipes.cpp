#include "runner/local/terminal_pipes.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/local/terminal.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::size_t, 2> kOutputs = {STDOUT_FILENO, STDERR_FILENO};

}  // namespace

TerminalPipes::TerminalPipes(const std::array<int, 3>& streams) : streams_(streams) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (::isatty(streams[i]) != 1) continue;
    Pipe pipe = make_pipe();
    const bool is_input = i == STDIN_FILENO;
    theirs_[i] = std::move(is_input ? pipe.read_end : pipe.write_end);
    ours_[i] = std::move(is_input ? pipe.write_end : pipe.read_end);
    ::fcntl(ours_[i].get(), F_SETFL, O_NONBLOCK);
  }
}

std::vector<int> TerminalPipes::files() const {
  std::vector<int> files;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    files.push_back(theirs_[i] ? theirs_[i].get() : streams_[i]);
  }
  return files;
}

void TerminalPipes::handed_over() {
  for (Fd& fd : theirs_) fd.reset();
}

std::array<pollfd, 3> TerminalPipes::watched() const {
  std::array<pollfd, 3> fds{};
  for (std::size_t i = 0; i < fds.size(); ++i) {
    fds[i] = {ours_[i] ? ours_[i].get() : -1, POLLIN, 0};
  }
  if (ours_[STDIN_FILENO]) {
    fds[STDIN_FILENO] = pending_.empty() ? pollfd{streams_[STDIN_FILENO], POLLIN, 0}
                                         : pollfd{ours_[STDIN_FILENO].get(), POLLOUT, 0};
  }
  return fds;
}

void TerminalPipes::copy(const std::array<pollfd, 3>& found) {
  if (found[STDIN_FILENO].revents != 0) copy_input();
  for (const std::size_t i : kOutputs) {
    if (found[i].revents != 0 && !copy_some(ours_[i].get(), streams_[i])) ours_[i].reset();
  }
}

void TerminalPipes::copy_input() {
  if (pending_.empty()) {
    std::array<char, 4096> typed{};
    const ssize_t count = ::read(streams_[STDIN_FILENO], typed.data(), typed.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) return ours_[STDIN_FILENO].reset();
    pending_.assign(typed.data(), static_cast<std::size_t>(count));
  }
  const ssize_t count = write_quietly(ours_[STDIN_FILENO].get(), pending_);
  if (count >= 0) {
    pending_.erase(0, static_cast<std::size_t>(count));
  } else if (errno != EINTR && errno != EAGAIN) {
    ours_[STDIN_FILENO].reset();
    pending_.clear();
  }
}

void TerminalPipes::drain() {
  for (const std::size_t i : kOutputs) {
    int left = 0;
    if (!ours_[i] || ::ioctl(ours_[i].get(), FIONREAD, &left) != 0) continue;
    std::array<char, 4096> buffer{};
    while (left > 0) {
      const std::size_t most = std::min(buffer.size(), static_cast<std::size_t>(left));
      const ssize_t count = ::read(ours_[i].get(), buffer.data(), most);
      if (count <= 0) break;
      left -= static_cast<int>(count);
      std::string_view rest{buffer.data(), static_cast<std::size_t>(count)};
      while (!rest.empty()) {
        const ssize_t written = write_quietly(streams_[i], rest);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        rest.remove_prefix(static_cast<std::size_t>(written));
      }
    }
  }
}

}  // namespace mlenv
