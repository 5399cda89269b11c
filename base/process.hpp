#pragma once
// Child processes: argv vectors, never a shell string; own process group; no wait without an owner.
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/handle.hpp"

namespace mlenv {

/// A status of a process that signal n ended is this + n, as a shell has it.
inline constexpr int kSignalBase = 128;

/// How a process ended. `code` is its exit status, or 128+n after signal n.
struct Exit {
  int code = 0;
  bool signalled = false;
  friend bool operator==(const Exit&, const Exit&) = default;
};

/// What a program is started for, in one word of docs/threat-model.md, whose table says what others
/// could have written of its inputs. `.ci/programs` holds the table against the words in the
/// sources.
struct Purpose {
  explicit constexpr Purpose(std::string_view word) : name(word) {}
  std::string_view name;  ///< a literal: it outlives the command
};

struct Command {
  explicit Command(Purpose why) : purpose(why) {}
  Purpose purpose;
  std::vector<std::string> argv;  ///< argv[0] is looked up on PATH when it has no slash
  std::optional<std::vector<std::string>> env;  ///< `K=V`; nullopt inherits
  fs::path folder;                              ///< working directory; empty inherits
  int stdin_fd = -1;                            ///< -1 is /dev/null
  int stdout_fd = 1;                            ///< inherited
  int stderr_fd = 2;                            ///< inherited
  std::vector<std::pair<int, int>> extra_fds;   ///< ours, theirs
  bool own_group = true;                        ///< false for a job that keeps our terminal
};

class Child {
 public:
  /// Throws `cannot-start` when the program is absent or may not run.
  explicit Child(const Command& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// Kills the process (its group when it has one) and reaps it, if it dies within seconds.
  ~Child();

  pid_t pid() const { return pid_; }
  /// nullopt when the deadline passes first; without one it waits as long as it takes.
  std::optional<Exit> wait(std::optional<std::chrono::milliseconds> deadline = std::nullopt);
  void signal(int number);

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  bool own_group_ = true;
  std::optional<Exit> exit_;
};

struct Captured {
  Exit exit;
  std::string out;
  std::string err;
};

/// Runs to the end, collecting both outputs (each capped at 64 MiB); kills it at the deadline and
/// throws `timeout`. `input` goes to its standard input.
Captured run_captured(Command command, std::chrono::milliseconds deadline,
                      std::string_view input = {});

/// Starts a program that outlives us: in a session of its own, without streams, and nobody's to
/// wait for, but for what `stdin_fd` (not -1) is. argv[0] is a path. That it cannot be started is
/// not told.
void start_detached(Purpose purpose, const std::vector<std::string>& argv, int stdin_fd = -1);

/// First match on PATH, or nullopt.
std::optional<fs::path> find_program(std::string_view name);

/// The running mlenv executable itself, for re-exec.
fs::path own_executable();

/// write(2) to a pipe whose reader may be gone: EPIPE, never a SIGPIPE that would end us.
ssize_t write_quietly(int fd, std::string_view data);

struct Pipe {
  Fd read_end;
  Fd write_end;
};
/// Both ends close-on-exec.
Pipe make_pipe();
/// Gives `take` what comes through a pipe until it ends; false when the time is up first.
bool drain(const Fd& pipe, std::chrono::steady_clock::time_point end,
           const std::function<void(std::string_view)>& take);

}  // namespace mlenv
