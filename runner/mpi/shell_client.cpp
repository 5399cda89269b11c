#include "runner/mpi/shell_client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/printable.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/mpi/sockets.hpp"

namespace mlenv::mpi {
namespace {

constexpr int kBroken = 255;  // as of ssh
/// A container on another node comes up later than this one.
constexpr std::chrono::milliseconds kUntilUp{60'000};

class Asking {
 public:
  Asking(const Host& host, std::string_view secret)
      : host_(host), secret_(secret), connection_(connect_to(host, kUntilUp)) {}

  void ask(FrameKind kind, const std::string& payload) {
    const std::optional<Frame> nonce = wait_for_frame();
    if (!nonce || nonce->kind != FrameKind::nonce) throw broken();
    send(render_request(kind, payload, nonce->payload, secret_));
  }

  /// To the end of what was asked for; `input`: our standard input is its.
  int follow(bool input) {
    const SignalQueue signals;
    if (!input) send(render_frame(FrameKind::input_end, {}));
    while (true) {
      while (const std::optional<Frame> frame = reader_.next()) {
        if (const std::optional<int> status = on(*frame)) return *status;
      }
      std::array<pollfd, 3> fds{{{connection_.get(), POLLIN, 0},
                                 {signals.fd(), POLLIN, 0},
                                 {input ? STDIN_FILENO : -1, POLLIN, 0}}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
        throw os_error(errno, "cannot wait for node `{}`", host_.name);
      }
      while (const int number = signals.next()) {
        send(render_frame(FrameKind::signal, std::to_string(number)));
      }
      if (fds[2].revents != 0) input = pass_input();
      if (fds[0].revents != 0 && !take()) return kBroken;
    }
  }

 private:
  Error broken() const { return failure("no-node", "node `{}` closed the connection", host_.name); }

  /// The status, once it is known.
  std::optional<int> on(const Frame& frame) const {
    if (frame.kind == FrameKind::output) write_all(STDOUT_FILENO, as_bytes(frame.payload));
    if (frame.kind == FrameKind::error) write_all(STDERR_FILENO, as_bytes(frame.payload));
    if (frame.kind == FrameKind::refused) {
      constexpr std::size_t kMostShown = 500;
      throw failure("mpi-refused", "node `{}` refuses it: {}", host_.name,
                    printable(std::string_view(frame.payload).substr(0, kMostShown)));
    }
    if (frame.kind != FrameKind::ended) return std::nullopt;
    int status = kBroken;
    std::from_chars(frame.payload.data(), frame.payload.data() + frame.payload.size(), status);
    return status >= 0 && status < kBroken ? status : kBroken;
  }

  /// False: there is no more of it.
  bool pass_input() {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count <= 0) {
      send(render_frame(FrameKind::input_end, {}));
      return false;
    }
    send(render_frame(FrameKind::input, {buffer.data(), static_cast<std::size_t>(count)}));
    return true;
  }

  /// False: the connection is over.
  bool take() {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(connection_.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count <= 0) return false;
    reader_.take({buffer.data(), static_cast<std::size_t>(count)});
    return true;
  }

  std::optional<Frame> wait_for_frame() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds kMost{30};
    const auto until = Clock::now() + kMost;
    while (true) {
      if (std::optional<Frame> frame = reader_.next()) return frame;
      if (Clock::now() >= until) throw broken();
      wait_for(POLLIN);
      if (!take()) return std::nullopt;
    }
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return;  // its end is read
      if (count > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
      } else {
        wait_for(POLLOUT);
      }
    }
  }

  void wait_for(short events) const {
    constexpr int kLongest = 10'000;
    pollfd ready{connection_.get(), events, 0};
    if (::poll(&ready, 1, kLongest) == 0) throw broken();
  }

  const Host& host_;
  std::string secret_;
  Fd connection_;
  FrameReader reader_;
};

}  // namespace

int run_there(const Host& host, const ShellWords& words, const std::string& secret) {
  Asking asking{host, secret};
  asking.ask(FrameKind::command, words.command);
  return asking.follow(!words.no_input);
}

void report_to(const Host& host, const RankFailure& failure, const std::string& secret) {
  Asking asking{host, secret};
  asking.ask(FrameKind::report, render_failure(failure));
  (void)asking.follow(/*input=*/false);
}

}  // namespace mlenv::mpi
