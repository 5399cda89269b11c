// The debug log without spdlog: the same lines, straight to standard error.
#include "base/log.hpp"

#include <unistd.h>
#include <array>
#include <chrono>
#include <ctime>

#include "base/printable.hpp"
#include "base/process.hpp"

namespace mlenv::log {
namespace {

bool on = false;

}  // namespace

void enable() { on = true; }
bool enabled() { return on; }

void write(std::string_view text) {
  if (!on) return;
  constexpr int kThousand = 1000;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto all = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const auto seconds = static_cast<std::time_t>(all / kThousand);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  const std::string line =
      fmt::format("[{:02}:{:02}:{:02}.{:03}] {}\n", parts.tm_hour, parts.tm_min, parts.tm_sec,
                  all % kThousand, printable_lines(text));
  (void)write_quietly(STDERR_FILENO, line);
}

}  // namespace mlenv::log
