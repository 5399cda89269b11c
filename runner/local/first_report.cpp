#include "runner/local/first_report.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <cerrno>

namespace mlenv {

void FirstReport::go_with(Command& command) const {
  command.extra_fds.emplace_back(pipe_.write_end.get(), keeper::kReportFd);
}

std::optional<keeper::Failed> FirstReport::wait() {
  constexpr int kLongest = 5000;  // milliseconds
  pollfd waiting{pipe_.read_end.get(), POLLIN, 0};
  while (::poll(&waiting, 1, kLongest) < 0 && errno == EINTR) {
  }
  return look();
}

std::optional<keeper::Failed> FirstReport::look() {
  keeper::Failed failed;
  (void)::fcntl(pipe_.read_end.get(), F_SETFL, O_NONBLOCK);
  // Pipes give what is as small as this whole (pipe(7)).
  if (::read(pipe_.read_end.get(), &failed, sizeof failed) == sizeof failed) failed_ = failed;
  return failed_;
}

Error cannot_enter(const std::string& folder, const keeper::Failed& problem) {
  const int error = problem.error;
  if (problem.step == keeper::Failed::Step::filter) {
    return failure("run-failed", "the container's system calls cannot be filtered")
        .because(errno_text(error))
        .hint("a kernel with CONFIG_SECCOMP_FILTER can");
  }
  const bool leads_out = error == ELOOP || error == EXDEV;
  return usage_error("bad-workdir", "the command cannot start in its folder `{}`", folder)
      .because(leads_out ? "its links lead out of the container, or in a circle"
                         : errno_text(error))
      .hint("name a folder that is there with `-w`");
}

}  // namespace mlenv
