// The minder from within: requests one after the other, then, when nobody can ask any more, the end
// of everything that it started.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "base/spawn.hpp"
#include "base/text.hpp"
#include "runner/compare/minder_words.hpp"
#include "runner/compare/shield.hpp"
#include "runner/local/control.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::steady_clock;

/// `123 (name) S 45 …`: 45. The name may hold anything.
std::optional<pid_t> parent_in(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  constexpr std::size_t kState = 4;  // `) S `
  if (name_end == std::string_view::npos || stat.size() < name_end + kState) return std::nullopt;
  const std::string_view rest = stat.substr(name_end + kState);
  pid_t parent = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), parent);
  return error == std::errc{} ? std::optional(parent) : std::nullopt;
}

std::vector<pid_t> children_now() {
  std::vector<pid_t> children;
  const pid_t self = ::getpid();
  for (const fs::path& folder : list_folder("/proc")) {
    const std::string name = folder.filename().string();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    try {
      const std::optional<std::string> stat = read_file_if_exists(folder / "stat");
      if (stat && parent_in(*stat) == self) children.push_back(pid);
    } catch (const Error&) {
      continue;  // it ended meanwhile
    }
  }
  return children;
}

class MinderProcess {
 public:
  explicit MinderProcess(Ending ending) : ending_(ending) {}

  int run() {
    while (true) {
      const Packet packet = receive_packet(minding::kSocket);
      if (packet.bytes.empty()) break;
      const std::string answer = minding::render_answer(answer_to(packet));
      if (!send_packet(minding::kSocket, answer)) break;
    }
    end_all();
    return 0;
  }

 private:
  minding::Answer answer_to(const Packet& packet) {
    minding::Answer answer;
    try {
      minding::Request request = minding::parse_request(packet.bytes);
      if (!request.start) {
        answer.exit = end(request.end);
        return answer;
      }
      start(*request.start, packet.files, answer);
    } catch (const Error& error) {
      answer.why = error.frames().back();
    }
    return answer;
  }

  void start(Command& command, const std::vector<Fd>& files, minding::Answer& answer) {
    command.stdin_fd = files.at(0).get();
    command.stdout_fd = files.at(1).get();
    command.stderr_fd = files.at(2).get();
    answer.at =
        std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch())
            .count();
    answer.pid = spawn(command, Leads::session);
    live_.insert(answer.pid);
  }

  Exit end(pid_t pid) {
    // The group's number is ours until its first process is waited for.
    if (live_.erase(pid) > 0) ::kill(-pid, SIGKILL);
    const Exit exit = reap(pid);
    if (ending_ == Ending::kill) end_orphans();
    return exit;
  }

  /// Whoever left its group and lost its parent is a child of ours by now: ended, it leaves us its
  /// own children in turn, until there are none.
  void end_orphans() {
    std::set<pid_t> out_of_reach;  // setuid programs
    while (true) {
      bool any = false;
      for (const pid_t pid : children_now()) {
        if (live_.contains(pid) || out_of_reach.contains(pid)) continue;
        if (::kill(pid, SIGKILL) != 0) {
          out_of_reach.insert(pid);
          continue;
        }
        (void)reap(pid);
        any = true;
      }
      if (!any) return;
    }
  }

  void end_all() {
    if (ending_ == Ending::ask) ask_all();
    const std::set<pid_t> all = live_;
    for (const pid_t pid : all) (void)end(pid);
  }

  void ask_all() const {
    const steady_clock::time_point until = steady_clock::now() + minding::kMoment;
    for (const pid_t pid : live_) ::kill(pid, SIGTERM);
    for (const pid_t pid : live_) {
      const Fd ended = open_pidfd(pid);
      pollfd fd{ended.get(), POLLIN, 0};
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
      (void)::poll(&fd, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    }
  }

  Ending ending_;
  std::set<pid_t> live_;  ///< started, not yet waited for
};

/// Whoever ends the whole session ends mlenv, too; we come last.
void stand_apart(Ending ending) {
  ::fcntl(minding::kSocket, F_SETFD, FD_CLOEXEC);
  ::setsid();
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&set, number);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (ending == Ending::kill) ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

}  // namespace

std::optional<int> minder_main(int argc, char** argv) {
  constexpr int kWords = 3;
  const bool shields = argc == kWords + 1;
  if ((argc != kWords && !shields) || argv[1] != minding::kArgument) return std::nullopt;
  const bool kills = argv[2] == minding::word_of(Ending::kill);
  const Ending ending = kills ? Ending::kill : Ending::ask;
  stand_apart(ending);
  if (shields) {
    minding::Answer answer;
    answer.why = shield(argv[kWords]);
    if (!send_packet(minding::kSocket, minding::render_answer(answer))) return 0;
  }
  return MinderProcess(ending).run();
}

}  // namespace mlenv::compare
