#include "runner/local/exec_client.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "runner/local/exec_server.hpp"
#include "runner/local/signals.hpp"
#include "runner/local/stage.hpp"
#include "runner/local/terminal.hpp"
#include "runner/local/terminal_pipes.hpp"

namespace mlenv {
namespace {

/// Signals that are passed on, and changes of the terminal's size, as something to read. They stay
/// held when this ends: the process is about to end with the command's status.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t set = forwarded_signals();
    sigaddset(&set, SIGWINCH);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    fd_ = Fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (!fd_) throw os_error(errno, "cannot watch for signals");
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  int fd() const { return fd_.get(); }
  /// nullopt when there is none.
  std::optional<int> take() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
      return std::nullopt;
    }
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t before_{};
  Fd fd_;
};

class Client {
 public:
  explicit Client(Fd connection) : connection_(std::move(connection)) {}

  /// Without `streams` the command gets a terminal of its own.
  Exit run(const ExecRequest& request, TerminalPipes* streams) {
    streams_ = streams;
    const std::vector<int> files = streams == nullptr ? std::vector<int>{} : streams->files();
    if (!send_packet(connection_.get(), render_exec(request), files)) throw gone();
    if (streams_ != nullptr) streams_->handed_over();
    while (!outcome_) step();
    if (master_) drain();
    if (streams_ != nullptr) streams_->drain();
    return *outcome_;
  }

 private:
  static Error gone() { return failure("run-failed", "the run ended, and the command with it"); }

  void step() {
    std::array<pollfd, 7> fds{{{connection_.get(), POLLIN, 0},
                               {signals_.fd(), POLLIN, 0},
                               {master_ ? master_.get() : -1, POLLIN, 0},
                               {master_ && input_open_ ? STDIN_FILENO : -1, POLLIN, 0},
                               {-1, 0, 0},
                               {-1, 0, 0},
                               {-1, 0, 0}}};
    std::array<pollfd, 3> streams{};
    if (streams_ != nullptr) {
      streams = streams_->watched();
      std::copy(streams.begin(), streams.end(), fds.begin() + kOwnFds);
    }
    const int most = end_by_ ? kLook : -1;
    if (::poll(fds.data(), fds.size(), most) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for the command");
    }
    if (end_by_ && Clock::now() >= *end_by_) {
      raw_.reset();
      outcome_ = Exit{kSignalBase + first_signal_, true};  // with the connection the command ends
      return;
    }
    if (fds[1].revents != 0) pass_signals();
    if (fds[3].revents != 0) input_open_ = copy_some(STDIN_FILENO, master_.get());
    if (streams_ != nullptr) {
      std::copy(fds.begin() + kOwnFds, fds.end(), streams.begin());
      streams_->copy(streams);
    }
    if (fds[2].revents != 0 && !copy_some(master_.get(), STDOUT_FILENO)) master_.reset();
    if (fds[0].revents != 0) take_packet();
  }

  void take_packet() {
    Packet packet = receive_packet(connection_.get());
    if (packet.bytes.empty()) throw gone();
    if (!is_started(packet.bytes)) {
      raw_.reset();
      const StageOutcome outcome = parse_stage_outcome(packet.bytes);
      if (!outcome.complaint.empty()) {
        write_all(STDERR_FILENO, as_bytes("mlenv: " + printable(outcome.complaint) + "\n"));
      }
      outcome_ = outcome.run.exit;
    } else if (!packet.files.empty()) {
      master_ = std::move(packet.files.front());
      raw_.emplace();
      resize();
    }
  }

  void pass_signals() {
    while (const std::optional<int> number = signals_.take()) {
      if (*number == SIGWINCH) {
        resize();
      } else {
        (void)send_packet(connection_.get(), render_signal(*number));
        heed_insistence(*number);
      }
    }
  }

  /// Whoever asks twice need not wait for the command, nor for a mlenv that does not go on.
  void heed_insistence(int number) {
    constexpr std::chrono::seconds kSecondGrace{2};
    if (number != SIGINT && number != SIGTERM) return;
    constexpr std::chrono::milliseconds kOneRequest{300};  // sent to all processes of a group
    if (first_signal_ == 0) {
      first_signal_ = number;
      first_came_ = Clock::now();
    } else if (!end_by_ && Clock::now() - first_came_ >= kOneRequest) {
      end_by_ = Clock::now() + kSecondGrace;
    }
  }

  void resize() {
    if (master_) follow_size(master_.get());
  }

  /// What the command wrote last; what it left running may hold the terminal open.
  void drain() {
    ::fcntl(master_.get(), F_SETFL, O_NONBLOCK);
    pollfd more{master_.get(), POLLIN, 0};
    while (::poll(&more, 1, 0) == 1 && (more.revents & POLLIN) != 0) {
      if (!copy_some(master_.get(), STDOUT_FILENO)) return;
    }
  }

  using Clock = std::chrono::steady_clock;
  static constexpr int kLook = 100;  // milliseconds
  static constexpr int kOwnFds = 4;  ///< before those of the streams

  Fd connection_;
  HeldSignals signals_;
  Clock::time_point first_came_{};
  int first_signal_ = 0;  ///< of SIGINT and SIGTERM
  std::optional<Clock::time_point> end_by_{};
  Fd master_;
  TerminalPipes* streams_ = nullptr;
  bool input_open_ = true;
  std::optional<RawTerminal> raw_;
  std::optional<Exit> outcome_;
};

}  // namespace

Exit exec_in_run(const fs::path& run_folder, std::string_view id, ExecRequest request, bool input) {
  Client client{connect_to_run(run_folder, id)};
  if (request.terminal) {
    const winsize size = terminal_size();
    request.rows = size.ws_row;
    request.columns = size.ws_col;
    return client.run(request, nullptr);
  }
  const Fd null = open_file("/dev/null");
  TerminalPipes streams{{input ? STDIN_FILENO : null.get(), STDOUT_FILENO, STDERR_FILENO}};
  return client.run(request, &streams);
}

void stop_run(const fs::path& run_folder, std::string_view id, const StopRequest& request) {
  const Fd connection = connect_to_run(run_folder, id);
  // Whether it is heard or the run has just ended: it ends.
  if (!send_packet(connection.get(), render_stop(request))) return;
  const auto asked = std::chrono::steady_clock::now();
  const Packet packet = receive_packet_within(connection.get(), kMostControlAnswer);
  if (!packet.bytes.empty()) {
    (void)parse_outcome(packet.bytes);
  } else if (std::chrono::steady_clock::now() - asked >= kMostControlAnswer) {
    throw no_answer_of_run(id);
  }
}

}  // namespace mlenv
