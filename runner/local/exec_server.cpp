#include "runner/local/exec_server.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/pidfd.hpp"
#include "runner/local/first_report.hpp"
#include "runner/local/program.hpp"
#include "runner/local/shell.hpp"
#include "runner/local/stage.hpp"

namespace mlenv {
namespace {

/// Nothing of the stage's must stay open here: neither the job's streams nor what tells others that
/// the stage lives.
void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = 3;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > from) ::close_range(from, number - 1, 0);
    from = std::max(from, number + 1);
  }
  ::close_range(from, ~0U, 0);
}

}  // namespace

void leave_the_stage(std::vector<int> kept) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::setsid();
  const Fd null = open_file("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null.get(), fd);
  close_all_but(std::move(kept));
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

namespace {

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

void put_variable(std::vector<std::string>& all, const std::string& variable) {
  std::erase_if(all, [&](const std::string& one) { return name_of(one) == name_of(variable); });
  all.push_back(variable);
}

}  // namespace

Bundle bundle_of(Bundle bundle, const ExecRequest& request, const ImageRoot& image) {
  bundle.make_workdir = false;
  bundle.argv = request.argv;
  if (bundle.argv.empty()) {
    bundle.argv = {best_shell(
        [&](const std::string& path) { return image.program(path) == ImageRoot::Program::found; })};
  }
  bundle.terminal = request.terminal;
  if (request.terminal && !request.term.empty()) {
    put_variable(bundle.env, "TERM=" + request.term);
  }
  for (const std::string& variable : request.env) put_variable(bundle.env, variable);
  if (!request.workdir.empty()) {
    bundle.workdir = (fs::path(bundle.workdir) / request.workdir).lexically_normal().string();
  }
  return bundle;
}

namespace {

/// Where the runtime sends the master of the terminal.
class ConsoleSocket {
 public:
  /// Relative to the working folder.
  explicit ConsoleSocket(const std::string& name)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto* any = reinterpret_cast<const sockaddr*>(&address);  // NOLINT(*-reinterpret-cast)
    if (!fd_ || ::bind(fd_.get(), any, sizeof address) != 0 || ::listen(fd_.get(), 1) != 0) {
      throw os_error(errno, "cannot make a socket for the terminal");
    }
  }
  /// After the runtime has left. Throws `run-failed` when it sent none.
  Fd master() const {
    pollfd waiting{fd_.get(), POLLIN, 0};
    constexpr int kLongest = 10'000;
    if (::poll(&waiting, 1, kLongest) == 1) {
      const Fd connection{::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      Packet packet = receive_packet(connection.get());
      if (packet.files.size() == 1) return std::move(packet.files.front());
    }
    throw failure("run-failed", "the runtime gave no terminal");
  }

 private:
  Fd fd_;
};

}  // namespace

void check_folder(const Bundle& bundle, const ImageRoot& image) {
  std::vector<std::string> targets = default_mount_targets();
  for (const Mount& mount : bundle.mounts) targets.push_back(mount.target);
  const bool in_mount = std::any_of(targets.begin(), targets.end(), [&](const std::string& target) {
    return is_beneath(bundle.workdir, target);
  });
  if (in_mount || image.is_folder(bundle.workdir)) return;
  throw usage_error("bad-workdir", "the run has no folder `{}`", bundle.workdir)
      .hint("name one that is there with `-w`");
}

namespace {

/// The container that the command is put into.
struct Into {
  const Runtime& runtime;
  const Container& container;
  const LimitGroup* limits;  ///< what it began in; may be absent
};

class Served {
 public:
  Served(const Into& into, const AskedCommand& asked, unsigned number)
      : into_(into), asked_(asked) {
    const fs::path& folder = into.container.bundle;
    const std::string name = fmt::format("exec-{}", number);
    files_.process = folder / (name + ".json");
    files_.pid = folder / (name + ".pid");
    files_.log = folder / (name + ".log");
    if (asked.request.terminal) files_.console = name + ".socket";
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    for (const fs::path& path : {files_.process, files_.pid, files_.log}) ::unlink(path.c_str());
    if (!files_.console.empty()) ::unlink((into_.container.bundle / files_.console).c_str());
  }

  RunOutcome run(const Bundle& bundle, std::string& complaint) {
    if (::chdir(into_.container.bundle.c_str()) != 0)
      throw os_error(errno, "cannot enter a folder");
    write_file(files_.process, render_process(bundle), false);
    std::optional<ConsoleSocket> console;
    if (asked_.request.terminal) console.emplace(files_.console.string());
    FirstReport report;
    start(report);
    const auto pid = static_cast<pid_t>(std::stol(read_file(files_.pid)));
    if (const auto problem = report.wait()) {
      (void)reap(pid);
      const std::optional<CannotRun> refused = refused_by_kernel(*problem, bundle.argv.front());
      if (!refused) throw cannot_enter(bundle.workdir, *problem);
      complaint = refused->why;
      return {{refused->status, false}};
    }
    if (console) {
      const Fd master = console->master();
      const winsize size{asked_.request.rows, asked_.request.columns, 0, 0};
      if (size.ws_row > 0) ::ioctl(master.get(), TIOCSWINSZ, &size);
      (void)send_packet(asked_.connection.get(), render_started(), {master.get()});
    } else {
      (void)send_packet(asked_.connection.get(), render_started());
    }
    watch(pid);
    return {reap(pid)};
  }

 private:
  void start(FirstReport& report) {
    Command command = exec_command(into_.runtime, into_.container, files_);
    report.go_with(command);
    if (!asked_.request.terminal) {
      command.stdin_fd = asked_.files.at(0).get();
      command.stdout_fd = asked_.files.at(1).get();
      command.stderr_fd = asked_.files.at(2).get();
    }
    Child starter = start_within(into_.limits, command);
    report.is_on_its_way();
    const Exit exit = starter.wait().value_or(Exit{});
    if (exit.code == 0) return;
    const std::string message = runtime_message(files_.log);
    throw failure("run-failed", "`{}` could not start the command in the container",
                  into_.runtime.program.filename().string())
        .because(message.empty() ? fmt::format("it ended with status {}", exit.code) : message);
  }

  /// Until it has ended; signals of the client reach it, and a client that is gone ends it and
  /// what it started (it leads a session of its own).
  void watch(pid_t pid) const {
    const Fd ended = open_pidfd(pid);
    std::array<pollfd, 2> fds{{{ended.get(), POLLIN, 0}, {asked_.connection.get(), POLLIN, 0}}};
    while (true) {
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
      if (fds[0].revents != 0) return;
      if (fds[1].revents == 0) continue;
      const Packet packet = receive_packet(asked_.connection.get());
      if (packet.bytes.empty()) {
        ::kill(-pid, SIGKILL);
        ::kill(pid, SIGKILL);
        fds[1].fd = -1;
      } else if (const auto number = parse_signal_packet(packet.bytes)) {
        ::syscall(SYS_pidfd_send_signal, ended.get(), *number, nullptr, 0);
      }
    }
  }

  const Into& into_;
  const AskedCommand& asked_;
  ExecFiles files_;
};

/// The whole life of a serving process.
void serve_asked(const Into& into, const Bundle& of_run, const AskedCommand& asked,
                 unsigned number) noexcept {
  const int connection = asked.connection.get();
  try {
    std::vector<int> kept{connection};
    for (const Fd& file : asked.files) kept.push_back(file.get());
    leave_the_stage(std::move(kept));
    const ImageRoot image{of_run.root};
    const Bundle bundle = bundle_of(of_run, asked.request, image);
    if (const std::optional<CannotRun> refused = cannot_run(bundle, image)) {
      (void)send_packet(connection,
                        render_outcome(RunOutcome{{refused->status, false}}, refused->why));
      return;
    }
    check_folder(bundle, image);
    std::string complaint;
    const RunOutcome outcome = Served{into, asked, number}.run(bundle, complaint);
    (void)send_packet(connection, render_outcome(outcome, complaint));
  } catch (const Error& error) {
    (void)send_packet(connection, render_outcome(error));
  } catch (const std::exception& error) {
    (void)send_packet(connection, render_outcome(Error(Kind::internal, "internal", error.what())));
  }
}

}  // namespace

void ExecServer::start(const ExecRequest& request, std::vector<Fd> files, Fd connection) {
  const AskedCommand asked{request, std::move(files), std::move(connection)};
  if (!asked.is_whole()) return;
  ++count_;
  serving_.start(asked.connection.get(), [&] {
    serve_asked({runtime_, container_, limits_}, bundle_, asked, count_);
  });
}

std::string render_started() { return "started"; }
bool is_started(std::string_view bytes) { return bytes == "started"; }
std::string render_signal(int number) { return "signal " + std::to_string(number); }
std::optional<int> parse_signal_packet(std::string_view bytes) {
  constexpr std::string_view kWord = "signal ";
  if (!bytes.starts_with(kWord)) return std::nullopt;
  return parse_signal(bytes.substr(kWord.size()));
}

}  // namespace mlenv
