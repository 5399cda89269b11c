#include "runner/engine/engine_exec.hpp"

#include <poll.h>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "runner/local/exec_server.hpp"
#include "runner/local/first_report.hpp"
#include "runner/local/program.hpp"
#include "runner/local/stage.hpp"

namespace mlenv {
namespace {

/// Nobody writes through it.
class NoWriter final : public ImageWriter {
 public:
  void write(const std::string& path, std::string_view text, mode_t mode) override {
    (void)path, (void)text, (void)mode;
  }
  void make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) override {
    (void)path, (void)uid, (void)gid;
  }
};

KeptProcess exec_process(KeptProcess process, const Bundle& bundle, const AskedCommand& asked) {
  process.argv = bundle.argv;
  process.env = bundle.env;
  process.workdir = bundle.workdir;
  process.make_workdir = false;
  process.terminal = asked.request.terminal;
  process.rows = asked.request.rows;
  process.columns = asked.request.columns;
  process.streams.clear();
  for (const Fd& file : asked.files) process.streams.push_back(file.get());
  return process;
}

RunOutcome not_started(const keeper::Failed& problem, const KeptProcess& process) {
  if (problem.step == keeper::Failed::Step::folder) {
    throw cannot_enter(process.workdir, problem);
  }
  const std::optional<CannotRun> refused = refused_by_kernel(problem, process.argv.front());
  if (refused) return {{refused->status, false}};
  throw failure("run-failed", "the command could not be started in the container")
      .because(errno_text(problem.error));
}

/// Until it has ended; signals of the client reach it, and a client that is gone ends it.
RunOutcome watch(Keeper& channel, const AskedCommand& asked) {
  std::array<pollfd, 2> fds{{{channel.fd(), POLLIN, 0}, {asked.connection.get(), POLLIN, 0}}};
  while (true) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return {};
    if (fds[0].revents != 0) {
      const std::optional<Keeper::End> end = channel.ended();
      return {end ? end->exit : Exit{128 + SIGKILL, true}};
    }
    if (fds[1].revents == 0) continue;
    const Packet packet = receive_packet(asked.connection.get());
    if (packet.bytes.empty()) return {};  // the channel closes with us, and the command ends
    if (const auto number = parse_signal_packet(packet.bytes)) channel.signal(*number);
  }
}

std::string outcome_of(const Bundle& bundle, const ImageRoot& image, const KeptProcess& of_run,
                       Keeper& channel, const AskedCommand& asked) {
  if (const std::optional<CannotRun> refused = cannot_run(bundle, image)) {
    return render_outcome(RunOutcome{{refused->status, false}}, refused->why);
  }
  check_folder(bundle, image);
  const KeptProcess process = exec_process(of_run, bundle, asked);
  keeper::Failed problem;
  const std::optional<Keeper::Started> started = channel.start(process, problem);
  if (!started) {
    const RunOutcome outcome = not_started(problem, process);
    return render_outcome(outcome, refused_by_kernel(problem, process.argv.front())->why);
  }
  std::vector<int> master;
  if (started->master) master.push_back(started->master.get());
  (void)send_packet(asked.connection.get(), render_started(), master);
  return render_outcome(watch(channel, asked));
}

void serve_exec(const Bundle& of_run, const KeptProcess& process, Keeper& channel, const Fd& root,
                const AskedCommand& asked) noexcept {
  const int connection = asked.connection.get();
  try {
    std::vector<int> kept{connection, channel.fd(), root.get()};
    for (const Fd& file : asked.files) kept.push_back(file.get());
    leave_the_stage(std::move(kept));
    NoWriter nobody;
    const ImageRoot image{Fd{::fcntl(root.get(), F_DUPFD_CLOEXEC, 3)}, nobody};
    const Bundle bundle = bundle_of(of_run, asked.request, image);
    (void)send_packet(connection, outcome_of(bundle, image, process, channel, asked));
  } catch (const Error& error) {
    (void)send_packet(connection, render_outcome(error));
  } catch (const std::exception& error) {
    (void)send_packet(connection, render_outcome(Error(Kind::internal, "internal", error.what())));
  }
}

}  // namespace

void EngineExec::start(const ExecRequest& request, std::vector<Fd> files, Fd connection) {
  const AskedCommand asked{request, std::move(files), std::move(connection)};
  if (!asked.is_whole()) return;
  Keeper channel = keeper_.channel();
  serving_.start(asked.connection.get(),
                 [&] { serve_exec(bundle_, process_, channel, root_, asked); });
}

}  // namespace mlenv
