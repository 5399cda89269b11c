#include "runner/mpi/shell_session.hpp"

#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "base/error.hpp"

namespace mlenv::mpi {
namespace {

/// What mpirun asks for grows by some bytes with each node.
constexpr std::size_t kMostOfStranger = std::size_t{1} << 20;
constexpr std::size_t kMostQueued = std::size_t{1} << 20;
constexpr int kCannotStart = 126;

void without_waiting(const Fd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

bool would_wait() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

ShellSession::ShellSession(Fd connection, std::string_view secret)
    : connection_(std::move(connection)), secret_(secret) {
  reader_.allow(kMostOfStranger);
  say(FrameKind::nonce, nonce_);
}

void ShellSession::add_to(std::vector<pollfd>& fds) const {
  const short writes = out_.empty() ? 0 : POLLOUT;
  const bool room = out_.size() < kMostQueued;
  const short reads = in_.size() < kMostQueued ? POLLIN : 0;
  fds.push_back({connection_.get(), static_cast<short>(reads | writes), 0});
  fds.push_back({room ? stdout_.get() : -1, POLLIN, 0});
  fds.push_back({room ? stderr_.get() : -1, POLLIN, 0});
  fds.push_back({in_.empty() ? -1 : stdin_.get(), POLLOUT, 0});
}

void ShellSession::hear(const pollfd* fds) {
  if (fds[1].revents != 0) pass_on(stdout_, FrameKind::output);
  if (fds[2].revents != 0) pass_on(stderr_, FrameKind::error);
  if (fds[3].revents != 0) feed();
  if ((fds[0].revents & ~POLLOUT) != 0) take_frames();
  tick();
  if (!over_) send();
}

void ShellSession::tick() {
  constexpr std::chrono::seconds kUntilAsked{10};
  if (over_) return;
  if (child_ && !last_said_ && !stdout_ && !stderr_) {
    if (const auto exit = child_->wait(std::chrono::milliseconds{0})) {
      say(FrameKind::ended, std::to_string(exit->code));
      last_said_ = true;
    }
  }
  const bool asked = child_.has_value() || last_said_;
  if (!asked && std::chrono::steady_clock::now() - begun_ > kUntilAsked) over_ = true;
}

void ShellSession::take_frames() {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(connection_.get(), buffer.data(), buffer.size());
  if (count < 0 && would_wait()) return;
  if (count <= 0) {
    over_ = true;  // ~Child ends what it asked for
    return;
  }
  reader_.take({buffer.data(), static_cast<std::size_t>(count)});
  try {
    while (!over_) {
      const std::optional<Frame> frame = reader_.next();
      if (!frame) return;
      on(*frame);
    }
  } catch (const Error&) {
    over_ = true;  // no program of ours
  }
}

void ShellSession::on(const Frame& frame) {
  if (last_said_) return;
  if (!child_) return ask(frame);
  if (frame.kind == FrameKind::input && !input_over_) {
    in_ += frame.payload;
  } else if (frame.kind == FrameKind::input_end) {
    input_over_ = true;
  } else if (frame.kind == FrameKind::signal) {
    int number = 0;
    std::from_chars(frame.payload.data(), frame.payload.data() + frame.payload.size(), number);
    if (number > 0 && number < NSIG) child_->signal(number);
  }
  feed();
}

void ShellSession::ask(const Frame& frame) {
  const std::optional<std::string> asked = request_in(frame, nonce_, secret_);
  if (!asked) {
    say(FrameKind::refused, "the job's secret is another one");
    last_said_ = true;
    return;
  }
  known_ = true;
  reader_.allow(FrameReader::kMostPayload);
  if (frame.kind == FrameKind::command) return start(*asked);
  report_ = parse_failure(*asked);
  say(FrameKind::ended, "0");
  last_said_ = true;
}

void ShellSession::start(const std::string& command) {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Command shell{Purpose{"mpi-shell"}};
  shell.argv = {"/bin/sh", "-c", command};
  shell.stdin_fd = in.read_end.get();
  shell.stdout_fd = out.write_end.get();
  shell.stderr_fd = err.write_end.get();
  try {
    child_.emplace(shell);
  } catch (const Error& error) {
    say(FrameKind::error, std::string(error.what()) + "\n");
    say(FrameKind::ended, std::to_string(kCannotStart));
    last_said_ = true;
    return;
  }
  stdin_ = std::move(in.write_end);
  stdout_ = std::move(out.read_end);
  stderr_ = std::move(err.read_end);
  without_waiting(stdin_);
}

void ShellSession::pass_on(Fd& from, FrameKind kind) {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
  if (count < 0 && would_wait()) return;
  if (count <= 0) return from.reset();
  say(kind, {buffer.data(), static_cast<std::size_t>(count)});
}

/// What is left of the input, as far as the command takes it.
void ShellSession::feed() {
  while (stdin_ && !in_.empty()) {
    const ssize_t count = write_quietly(stdin_.get(), in_);
    if (count < 0 && would_wait()) return;
    if (count <= 0) {
      in_.clear();
      stdin_.reset();
      input_over_ = true;
      return;
    }
    in_.erase(0, static_cast<std::size_t>(count));
  }
  if (input_over_) stdin_.reset();
}

void ShellSession::say(FrameKind kind, std::string_view payload) {
  out_ += render_frame(kind, payload);
}

void ShellSession::send() {
  while (!out_.empty()) {
    const ssize_t count = ::send(connection_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (count < 0 && would_wait()) return;
    if (count <= 0) {
      over_ = true;
      return;
    }
    out_.erase(0, static_cast<std::size_t>(count));
  }
  if (last_said_) over_ = true;
}

}  // namespace mlenv::mpi
