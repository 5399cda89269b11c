#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <memory>

#include "base/printable.hpp"

namespace mlenv::log {
namespace {
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = spdlog::stderr_logger_mt("mlenv");
    made->set_level(spdlog::level::off);
    made->set_pattern("[%H:%M:%S.%e] %v");
    return made;
  }();
  return *instance;
}
}  // namespace

void enable() { logger().set_level(spdlog::level::debug); }
bool enabled() { return logger().level() != spdlog::level::off; }
void write(std::string_view text) { logger().debug(printable_lines(text)); }

}  // namespace mlenv::log
