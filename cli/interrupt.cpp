#include "cli/interrupt.hpp"

#include <poll.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <string_view>

#include "base/captured.hpp"

namespace mlenv::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};

// The line comes after a `^C` that the terminal has shown, or a block of progress.
constexpr std::string_view kOnTerminal = "\ninterrupted; the same command goes on from here\n";
constexpr std::string_view kElsewhere = kOnTerminal.substr(1);

// A handler has no other way to its data; written before the handler is there.
volatile std::sig_atomic_t errors_on_terminal = 0;
volatile std::sig_atomic_t silent = 0;

/// The signal's own effect comes back when this returns (SA_RESETHAND).
void say_and_end(int number) {
  const std::string_view line = errors_on_terminal != 0 ? kOnTerminal : kElsewhere;
  // Not where nobody reads: a full pipe, a terminal that is stopped.
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  if (silent == 0 && ::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0) {
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  }
  end_captured();
  (void)::raise(number);
}

void set_handler(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

Interruption::Interruption(bool quiet) {
  errors_on_terminal = ::isatty(STDERR_FILENO);
  silent = quiet ? 1 : 0;
  for (const int number : kSignals) {
    set_handler(number, say_and_end,
                static_cast<int>(SA_RESETHAND | static_cast<unsigned>(SA_RESTART | SA_NODEFER)));
  }
}

Interruption::~Interruption() {
  for (const int number : kSignals) set_handler(number, SIG_DFL, 0);
}

}  // namespace mlenv::cli
