#include "runner/engine/engine_life.hpp"

#include <sys/timerfd.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>

#include "base/log.hpp"
#include "base/pidfd.hpp"

namespace mlenv {
namespace {

/// systemd starts Docker's daemon again after two seconds.
constexpr std::chrono::seconds kDaemonPatience{15};
constexpr std::chrono::seconds kBetweenLooks{1};
/// What it is asked costs it nothing; meanwhile nobody hears signals.
constexpr std::chrono::seconds kVersionAnswer{2};

Fd clock_every(std::chrono::seconds time) {
  Fd fd{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  itimerspec beat{};
  beat.it_value.tv_sec = beat.it_interval.tv_sec = time.count();
  if (!fd || ::timerfd_settime(fd.get(), 0, &beat, nullptr) != 0) {
    throw os_error(errno, "cannot make a clock");
  }
  return fd;
}

bool answers(const ContainerEngine& engine) {
  try {
    return ask(engine, {"version"}, kVersionAnswer, "/").exit.code == 0;
  } catch (const Error& error) {
    log::debug("{}: {}", engine.name, error.what());
    return false;
  }
}

}  // namespace

EngineLife::EngineLife(const ContainerEngine& engine, pid_t client)
    : engine_(engine), watched_(open_pidfd(client)) {}

bool EngineLife::lives() {
  if (answers(engine_)) {
    watched_.reset();  // its process was ended alone, or it is back
    return true;
  }
  const Clock::time_point now = Clock::now();
  if (!last_) {
    last_ = now + kDaemonPatience;
    watched_ = clock_every(kBetweenLooks);
    return true;
  }
  std::uint64_t beats = 0;
  (void)::read(watched_.get(), &beats, sizeof beats);
  if (now < *last_) return true;
  watched_.reset();
  gone_ = true;
  return false;
}

Error engine_gone(const ContainerEngine& engine) {
  return failure("engine-down", "{} ended while the command ran, and mlenv ended the command",
                 engine.is_podman() ? "podman" : "Docker's daemon")
      .because(fmt::format("it was not back within {} s", kDaemonPatience.count()))
      .hint(
          "its own log tells why (`journalctl -u docker`); it removes what is left of the "
          "container when it starts again");
}

}  // namespace mlenv
