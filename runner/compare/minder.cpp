#include "runner/compare/minder.hpp"

#include <sys/socket.h>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "runner/compare/minder_words.hpp"
#include "runner/local/control.hpp"

namespace mlenv::compare {

Minder::Minder(Ending ending, const fs::path& read_only) : ending_(ending) {
  begin(read_only);
  if (read_only.empty()) return;
  unshielded_ = minding::parse_answer(receive_packet(socket_.get()).bytes).why;
  if (unshielded_.empty()) return;
  socket_.reset();  // it ends, and is of no use: it may have a namespace without rights
  begin({});
}

void Minder::begin(const fs::path& read_only) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  socket_ = Fd{ends[0]};
  const Fd theirs{ends[1]};
  const Fd nowhere = open_file("/dev/null", O_RDWR);
  Command command{Purpose{"compare-process"}};
  command.argv = {own_executable().string(), std::string(minding::kArgument),
                  std::string(minding::word_of(ending_))};
  if (!read_only.empty()) command.argv.push_back(read_only.string());
  command.stdout_fd = nowhere.get();
  command.stderr_fd = nowhere.get();
  command.extra_fds = {{theirs.get(), minding::kSocket}};
  process_.emplace(command);
}

Minder::~Minder() {
  socket_.reset();  // which is what it waits for
  if (process_) (void)process_->wait(2 * minding::kMoment);
}

Minder::Begun Minder::start(const Command& command) const {
  const auto cannot = [&](std::string why) {
    return failure("cannot-start", "cannot start `{}`", command.argv.at(0)).because(std::move(why));
  };
  const Fd nowhere = open_file("/dev/null");
  const int input = command.stdin_fd < 0 ? nowhere.get() : command.stdin_fd;
  const std::string request = minding::start_request(command);
  if (!send_packet(socket_.get(), request, {input, command.stdout_fd, command.stderr_fd})) {
    throw cannot("the process that starts it is gone");
  }
  const minding::Answer answer = minding::parse_answer(receive_packet(socket_.get()).bytes);
  if (!answer.why.empty()) throw cannot(answer.why);
  return {answer.pid, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(answer.at))};
}

std::optional<Exit> Minder::end(pid_t pid) const {
  if (!send_packet(socket_.get(), minding::end_request(pid))) return std::nullopt;
  const minding::Answer answer = minding::parse_answer(receive_packet(socket_.get()).bytes);
  if (!answer.why.empty()) return std::nullopt;
  return answer.exit;
}

}  // namespace mlenv::compare
