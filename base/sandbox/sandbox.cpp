#include "base/sandbox/sandbox.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/last_bytes.hpp"
#include "base/sandbox/plan.hpp"
#include "base/sandbox/refusal.hpp"
#include "base/sandbox/stage.hpp"

namespace mlenv {
namespace {

using sandbox::Plan;
using sandbox::Result;
using sandbox::Way;

constexpr std::size_t kOutputLimit = std::size_t{8} << 20U;
constexpr std::uint64_t kMessageLimit = std::uint64_t{256} << 20U;
constexpr int kFirstFreeFd = 10;  // ours must not lie on one of the child's fixed numbers

/// The same file under a number that no child of ours uses.
Fd moved_up(Fd fd) {
  Fd moved{::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstFreeFd)};
  if (!moved) throw os_error(errno, "cannot duplicate a descriptor");
  return moved;
}

Fd memory_file(const char* name, std::string_view text = {}) {
  Fd fd{::memfd_create(name, MFD_CLOEXEC)};
  if (!fd) throw os_error(errno, "cannot make a file in memory");
  write_all(fd.get(), as_bytes(text));
  return moved_up(std::move(fd));
}

std::string read_all_of(const Fd& fd) {
  FdSource source{fd.get()};
  return read_all(source, kMessageLimit);
}

/// Starts the re-executed half and waits until the program runs. `result` may be empty.
Child launch(Plan plan, const Fd& result) {
  if (!plan.command.overlay) plan.command.root = fs::canonical(plan.command.root);
  plan.caller = ::getpid();
  const Fd plan_file = memory_file("plan", encode(plan));
  Pipe report = make_pipe();
  report.write_end = moved_up(std::move(report.write_end));

  Command command{Purpose{"sandbox"}};
  // Not by its name: the file may have been replaced since we were started.
  command.argv = {"/proc/self/exe", std::string(sandbox::kArgument)};
  command.folder = "/";
  command.env = std::vector<std::string>{};  // the caller's may hold secrets
  command.stdin_fd = plan.command.stdin_fd;
  command.stdout_fd = plan.command.stdout_fd;
  command.stderr_fd = plan.command.stderr_fd;
  command.extra_fds = {{plan_file.get(), sandbox::kPlanFd},
                       {report.write_end.get(), sandbox::kReportFd}};
  if (result) command.extra_fds.emplace_back(result.get(), sandbox::kResultFd);
  Child child{command};
  report.write_end.reset();
  // Ends when the program's execve closes the last copy.
  const std::string trouble = sandbox::trouble_in(report.read_end, sandbox::kLongestSetUp);
  if (!trouble.empty()) throw sandbox::explained(sandbox::decode_error(trouble));
  return child;
}

/// The last `kOutputLimit` bytes of what comes through a pipe, read until it ends.
class OutputTail {
 public:
  OutputTail(Fd pipe, const std::function<void(std::string_view)>& listener)
      : pipe_(std::move(pipe)), listener_(listener) {}

  /// False when the time is up first.
  bool read_until(std::chrono::steady_clock::time_point end) {
    return drain(pipe_, end, [this](std::string_view part) { take(part); });
  }
  std::string release() { return text_.release(); }

 private:
  void take(std::string_view part) {
    text_.append(part);
    if (listener_) listener_(part);
  }
  Fd pipe_;
  const std::function<void(std::string_view)>& listener_;
  LastBytes text_{kOutputLimit};
};

/// Tries namespaces, then, for root in a container that forbids them, a plain chroot.
Child launch_recorded(Plan plan, const Fd& result) {
  try {
    return launch(plan, result);
  } catch (const Error& error) {
    if (error.code() != "sandbox-failed" || ::geteuid() != 0 || plan.command.overlay) throw;
    plan.way = Way::change_root;
    try {
      return launch(plan, result);
    } catch (const Error&) {
      throw error;
    }
  }
}

}  // namespace

Sandbox::Sandbox(const SandboxCommand& command)
    : child_(launch(Plan{.command = command, .initial = {}}, {})) {}

RecordedRun run_recorded(const SandboxCommand& command, const Owners& initial,
                         std::chrono::milliseconds deadline,
                         const std::function<void(std::string_view)>& output) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  Plan plan{.command = command, .recorded = true, .initial = initial};
  Pipe pipe = make_pipe();
  plan.command.stdout_fd = pipe.write_end.get();
  plan.command.stderr_fd = pipe.write_end.get();
  const Fd result_file = memory_file("result");
  Child child = launch_recorded(std::move(plan), result_file);
  pipe.write_end.reset();

  OutputTail tail{std::move(pipe.read_end), output};
  const bool closed = tail.read_until(end);
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  const std::optional<Exit> exit =
      closed ? child.wait(std::max(left, std::chrono::milliseconds{0})) : std::nullopt;
  if (!exit) {
    throw failure("timeout", "`{}` did not end within {} s", command.argv.at(0),
                  std::chrono::duration_cast<std::chrono::seconds>(deadline).count());
  }
  if (::lseek(result_file.get(), 0, SEEK_SET) != 0) throw os_error(errno, "cannot read a result");
  const std::string bytes = read_all_of(result_file);
  if (bytes.empty()) {
    throw failure("sandbox-failed", "the sandbox of `{}` ended before its program",
                  command.argv.at(0))
        .because(exit->signalled ? "it was killed" : "it gave no result");
  }
  Result result = sandbox::decode_result(bytes);
  if (!result.trouble.empty() || !result.exit) {
    throw failure("sandbox-failed", "cannot tell who owns the files that `{}` left",
                  command.argv.at(0))
        .because(result.trouble);
  }
  return {*result.exit, std::move(result.owners), std::move(result.capabilities), tail.release()};
}

void require_sandbox() {
  const TemporaryFolder root{temporary_root(), "mlenv-probe-"};
  Plan plan;
  plan.command.root = root.path();
  plan.recorded = true;
  Child child = launch_recorded(std::move(plan), memory_file("result"));
  const std::optional<Exit> exit = child.wait(sandbox::kLongestSetUp);
  if (!exit) throw sandbox::late_set_up();
  if (*exit != Exit{}) throw failure("sandbox-failed", "the sandbox ended before it began");
}

std::optional<int> sandbox_main(int argc, char** argv) {
  if (argc != 2 || argv[1] != sandbox::kArgument) return std::nullopt;
  return sandbox::run_stage();
}

}  // namespace mlenv
