#include "runner/node/agent.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "images/store.hpp"
#include "runner/job/beater.hpp"
#include "runner/job/channel.hpp"
#include "runner/local/group_sweep.hpp"
#include "runner/local/life.hpp"
#include "runner/node/hello.hpp"
#include "runner/node/node_job.hpp"
#include "runner/node/work.hpp"

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;
using Clock = Channel::Clock;

constexpr std::string_view kAgentArgument = "__node";
/// Before the controller has said how long it may be silent.
constexpr milliseconds kUntilMet{60'000};
/// Until ranks that were stopped are killed, once the agent ends.
constexpr milliseconds kMostAgentEnding{15'000};
constexpr milliseconds kSignalGrace{2'000};

/// SIGTERM and its kin, as something to read. Children are started with none blocked.
class EndSignals {
 public:
  EndSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    fd_ = Fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (!fd_) throw os_error(errno, "cannot wait for signals");
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  int fd() const { return fd_.get(); }
  /// 0: there is none.
  int next() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return 0;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t before_{};
  Fd fd_;
};

class Agent {
 public:
  Agent(Channel& channel, Store& store, const LinkSettings& link)
      : channel_(channel), store_(store), job_(channel, store), link_(link) {}

  int serve() {
    while (!finished()) {
      wait();
      if (beater_) beater_->turn();
      hear_controller();
      hear_signals();
      job_.tell();
      if (!channel_.send()) part("the connection to it closed");
      tick();
    }
    return status_;
  }

 private:
  void wait() {
    constexpr milliseconds::rep kTick = 250;
    std::vector<pollfd> fds{{channel_.read_fd(), POLLIN, 0},
                            {channel_.queued() > 0 ? channel_.write_fd() : -1, POLLOUT, 0},
                            {signals_.fd(), POLLIN, 0}};
    const std::size_t own = fds.size();
    job_.add_to(fds);
    const auto tick = job_.busy() ? 0 : std::min(kTick, link_.beat.count() / 2 + 1);
    if (::poll(fds.data(), fds.size(), static_cast<int>(tick)) < 0) {
      if (errno == EINTR) return;
      throw os_error(errno, "cannot wait for the job's controller");
    }
    job_.hear(fds.data() + own);
  }

  void hear_controller() {
    const bool open = channel_.take();
    try {
      while (const std::optional<Message> message = channel_.next()) on(*message);
    } catch (const Error& error) {
      if (error.code() != "bad-stream") throw;
      leave(error.what(), milliseconds(0));
    }
    if (open) return;
    // What passes its words on may still be there (srun, say, whose own input ended).
    channel_.close_reading();
    leave("its connection to mlenv closed", milliseconds(0));
  }

  void hear_signals() {
    while (const int number = signals_.next()) {
      leave("its agent was ended by " + signal_name(number), kSignalGrace);
    }
  }

  void on(const Message& message) {
    if (const auto* meet = std::get_if<Meet>(&message)) return on_meet(*meet);
    if (std::holds_alternative<Bye>(message)) return end(milliseconds(0), "");
    job_.take(message);
  }

  void on_meet(const Meet& meet) {
    if (meet.protocol != kProtocol) {
      return leave(fmt::format("its mlenv speaks version {} of the protocol, this one {}",
                               kProtocol, meet.protocol),
                   milliseconds(0));
    }
    met_ = true;
    constexpr std::uint64_t kMost = 3'600'000;
    if (meet.beat_ms > 0) link_.beat = milliseconds(std::min(meet.beat_ms, kMost));
    if (meet.silence_ms > 0) link_.silence = milliseconds(std::min(meet.silence_ms, kMost));
    beater_.emplace(link_.beat);
    beater_->add(channel_);
    channel_.say(Hello{hello_of(store_.root(), meet.ports)});
  }

  void tick() {
    job_.tick();
    const auto now = Clock::now();
    if (now - channel_.last_said() >= link_.beat) channel_.say(Beat{});
    check_silence(now);
    if (ending_since_ && now - *ending_since_ >= kMostAgentEnding) job_.kill_ranks();
  }

  void check_silence(Clock::time_point now) {
    const milliseconds most = met_ ? link_.silence : kUntilMet;
    const auto heard = channel_.last_heard();
    if (now - heard < most) return;
    hear_controller();  // this process may be the one that was busy, or slept
    if (channel_.last_heard() != heard) return;
    const double seconds = std::chrono::duration<double>(most).count();
    leave(fmt::format("nothing was heard of mlenv for {:.3g} s", seconds), milliseconds(0));
  }

  void leave(const std::string& why, milliseconds grace) {
    if (!ending_since_) channel_.say(Leaving{why});
    end(grace, why);
  }

  /// Nobody is there to be told.
  void part(const std::string& why) {
    channel_.close();
    end(milliseconds(0), why);
  }

  /// `why` is empty where the controller asked for it.
  void end(milliseconds grace, const std::string& why) {
    if (ending_since_) return;
    ending_since_ = Clock::now();
    status_ = why.empty() ? 0 : 1;
    job_.end(grace, why);
  }

  /// What a controller that is there has not heard yet is waited for, but not for long.
  bool finished() const {
    if (!ending_since_ || !job_.gone()) return false;
    const bool said = job_.told() && channel_.queued() == 0;
    return said || channel_.write_fd() < 0 || Clock::now() - *ending_since_ >= link_.silence;
  }

  Channel& channel_;
  Store& store_;
  NodeJob job_;
  LinkSettings link_;
  EndSignals signals_;
  bool met_ = false;
  std::optional<Beater> beater_;
  std::optional<Clock::time_point> ending_since_;
  int status_ = 0;
};

/// Its last words, when it could not even begin.
int give_up(Channel& channel, const std::string& why) {
  constexpr int kPatience = 5000;  // milliseconds
  channel.say(Leaving{why});
  while (channel.send() && channel.queued() > 0) {
    pollfd out{channel.write_fd(), POLLOUT, 0};
    if (::poll(&out, 1, kPatience) <= 0) break;
  }
  return 1;
}

/// A copy of a standard stream, out of children's reach; in its place something harmless.
Fd take_standard(int fd, int in_its_place) {
  constexpr int kBeyondOthers = 16;
  Fd taken{::fcntl(fd, F_DUPFD_CLOEXEC, kBeyondOthers)};
  if (!taken) throw os_error(errno, "cannot use standard stream {}", fd);
  ::dup2(in_its_place, fd);
  return taken;
}

}  // namespace

int serve_as_node(NodeStream stream, const AgentSettings& settings) {
  Channel channel{std::move(stream), /*after_marker=*/false};
  channel.say_raw(stream_marker());
  try {
    // Relative to where we were started; ranks' supervisors are elsewhere.
    sweep_own_groups();
    Store store{settings.store.empty() ? default_node_store() : fs::absolute(settings.store)};
    return Agent{channel, store, settings.link}.serve();
  } catch (const std::exception& error) {
    return give_up(channel, error.what());
  }
}

std::optional<int> node_main(int argc, char** argv) {
  if (const std::optional<int> status = work_main(argc, argv)) return status;
  if (argc < 2 || argv[1] != kAgentArgument) return std::nullopt;
  return serve_standard_streams(argc > 2 ? argv[2] : "");
}

int serve_standard_streams(const fs::path& store) {
  const Fd null = open_file("/dev/null", O_RDONLY);
  NodeStream stream;
  stream.from = take_standard(STDIN_FILENO, null.get());
  stream.to = take_standard(STDOUT_FILENO, STDERR_FILENO);
  return serve_as_node(std::move(stream), {store, {}});
}

}  // namespace mlenv::job
