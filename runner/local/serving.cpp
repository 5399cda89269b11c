#include "runner/local/serving.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"
#include "runner/local/reap_soon.hpp"
#include "runner/local/stage.hpp"

namespace mlenv {

bool AskedCommand::is_whole() const {
  constexpr std::size_t kStreams = 3;
  return files.size() == (request.terminal ? 0 : kStreams);
}

ServingProcesses::~ServingProcesses() {
  // The run is over, and so is what they look after: they notice within moments.
  constexpr std::chrono::seconds kMost{10};
  for (const pid_t pid : pids_) reap_soon(pid, kMost);
}

void ServingProcesses::start(int connection, const std::function<void()>& serve) {
  std::erase_if(pids_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  const pid_t pid = ::fork();
  if (pid == 0) {
    serve();
    ::_exit(0);
  }
  if (pid > 0) return pids_.push_back(pid);
  (void)send_packet(connection, render_outcome(os_error(errno, "cannot start a process")));
}

}  // namespace mlenv
