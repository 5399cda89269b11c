#include "base/program_start.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/descriptors.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace mlenv {
namespace {

/// `/dev/fd/63`, `/proc/self/fd/63`, also within a word; and the option by which a job's script
/// hands over variables (runner/node/run_command.hpp).
bool names_descriptor(std::string_view word) {
  return word.find("/fd/") != std::string_view::npos || word.starts_with("--env-fd");
}

bool name_descriptor(char** words) {
  for (; *words != nullptr; ++words) {
    if (names_descriptor(*words)) return true;
  }
  return false;
}

void put_descriptors_in_order(int argc, char** argv) {
  // Those that it is given stand at fixed numbers in a process that we started ourselves.
  const bool is_ours = argc > 1 && std::string_view(argv[1]).starts_with("__");
  if (is_ours || name_descriptor(argv) || name_descriptor(environ)) {
    close_on_exec_from(kFirstBeyondStreams);
  } else {
    close_from(kFirstBeyondStreams);
  }
}

extern "C" void go_on(int /*signal*/) {}

void put_signals_in_order() {
  for (const int number : {SIGCHLD, SIGPIPE}) (void)std::signal(number, SIG_DFL);
  // What is larger than the caller lets a file be (`ulimit -f`) is an error, EFBIG, and no end
  // without a word. A program that is started has no handler of ours.
  if (std::signal(SIGXFSZ, &go_on) == SIG_IGN) (void)std::signal(SIGXFSZ, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);  // NOLINT(concurrency-mt-unsafe): one thread
}

void put_umask_in_order() {
  constexpr mode_t kOwners = 0700;
  const mode_t before = ::umask(S_IWOTH);
  ::umask((before & ~kOwners) | S_IWOTH);
}

std::string_view name_in(const char* variable) {
  const char* const end = std::strchr(variable, '=');
  return end == nullptr ? std::string_view{}
                        : std::string_view(variable, static_cast<std::size_t>(end - variable));
}

/// Of two of one name getenv(3) sees the first, and other programs the last.
void put_environment_in_order() {
  constexpr std::string_view kNotForUs[] = {"LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID",
                                            "NOTIFY_SOCKET"};
  if (environ == nullptr) return;
  std::vector<std::string_view> known(std::begin(kNotForUs), std::end(kNotForUs));
  std::sort(known.begin(), known.end());
  char** kept = environ;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name = name_in(*variable);
    const auto at = std::lower_bound(known.begin(), known.end(), name);
    if (name.empty() || (at != known.end() && *at == name)) continue;
    known.insert(at, name);
    *kept++ = *variable;
  }
  *kept = nullptr;
}

}  // namespace

void begin_program(int argc, char** argv) {
  constexpr int kOwnFailure = 125;
  if (!standard_streams()) std::_Exit(kOwnFailure);
  put_environment_in_order();
  put_descriptors_in_order(argc, argv);
  put_signals_in_order();
  put_umask_in_order();
}

}  // namespace mlenv
