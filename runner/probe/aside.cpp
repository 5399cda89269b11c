#include "runner/probe/aside.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

namespace mlenv::probe {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMostReportBytes = std::size_t{16} << 20;

/// The process; killed and reaped with the object.
class Aside {
 public:
  explicit Aside(const std::vector<std::string>& words) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    output_ = ends[0];
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ) != 0) {
      pid_ = -1;
    }
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    if (pid_ > 0) end_by_force();
    if (output_ >= 0) ::close(output_);
  }

  bool started() const { return pid_ > 0; }

  /// Adds what it writes until it closes its end; false when it writes nothing for so long.
  bool read_to_end(std::string& into, std::chrono::seconds timeout) const {
    steady_clock::time_point deadline = steady_clock::now() + timeout;
    std::array<char, 4096> buffer{};
    while (into.size() < kMostReportBytes) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
      if (left.count() <= 0) return false;
      pollfd wait{output_, POLLIN, 0};
      const int ready = ::poll(&wait, 1, static_cast<int>(left.count()));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
      const ssize_t count = ::read(output_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return true;
      into.append(buffer.data(), static_cast<std::size_t>(count));
      deadline = steady_clock::now() + timeout;
    }
    return true;
  }

  /// How it ended, in words.
  std::string end() {
    const int status = reap();
    pid_ = -1;
    if (WIFSIGNALED(status)) {
      return "the driver crashed (signal " + std::to_string(WTERMSIG(status)) + ")";
    }
    return "the driver ended the process (status " + std::to_string(WEXITSTATUS(status)) + ")";
  }

 private:
  /// One that hangs within the kernel does not end even then, and is left behind.
  void end_by_force() const {
    ::kill(pid_, SIGKILL);
    pollfd wait{static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)), POLLIN, 0};
    constexpr int kPatience = 2000;  // ms
    ::poll(&wait, 1, wait.fd >= 0 ? kPatience : 0);
    ::waitpid(pid_, nullptr, WNOHANG);
    if (wait.fd >= 0) ::close(wait.fd);
  }
  int reap() const {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  pid_t pid_ = -1;
  int output_ = -1;
};

}  // namespace

Answer read_lines(std::string_view lines, std::string_view ending) {
  Answer answer;
  answer.members = members_of(Report{});
  std::string doing;
  bool judged = false;
  // A line without its end was cut off.
  for (std::size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 1);
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const std::string_view word = line.substr(0, blank);
    const std::string_view rest = line.substr(blank + 1);
    if (word == "doing") doing = rest;
    if (word == "report") answer.members = rest;
    if (word == "verdict") {
      const std::size_t first = rest.find('\t');
      const std::size_t second =
          first == std::string_view::npos ? first : rest.find('\t', first + 1);
      if (second == std::string_view::npos) continue;
      judged = true;
      answer.judgement = {verdict_named(rest.substr(0, first)),
                          std::string(rest.substr(first + 1, second - first - 1)),
                          std::string(rest.substr(second + 1))};
    }
  }
  if (!judged) {
    answer.judgement = {Verdict::fails, std::string(ending), ""};
    if (!doing.empty()) answer.judgement.reason += " at: " + doing;
  }
  return answer;
}

Answer ask_aside(const std::vector<std::string>& words, std::chrono::seconds timeout) {
  Aside process(words);
  if (!process.started()) return read_lines("", "no process could be started");
  std::string lines;
  if (!process.read_to_end(lines, timeout)) {
    return read_lines(lines,
                      "there was no answer within " + std::to_string(timeout.count()) + " s");
  }
  return read_lines(lines, process.end());
}

}  // namespace mlenv::probe
