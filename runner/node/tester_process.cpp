#include "runner/node/tester_process.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/files.hpp"
#include "runner/node/work.hpp"

namespace mlenv::job {

TesterProcess::TesterProcess(std::string_view work, Words words) {
  Pipe requests = make_pipe();
  Pipe answers = make_pipe();
  Command command{Purpose{"node-tester"}};
  command.argv = work_command({std::string(work)});
  command.stdin_fd = requests.read_end.get();
  command.stdout_fd = answers.write_end.get();
  Fd nowhere;
  if (words == Words::nowhere) {
    nowhere = Fd{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
    command.stderr_fd = nowhere.get();
  }
  child_.emplace(command);
  requests_ = std::move(requests.write_end);
  answers_ = std::move(answers.read_end);
}

void TesterProcess::ask(const std::string& request) {
  // Far less than a pipe holds, of requests that are answered one by one; nothing where it is gone.
  (void)write_quietly(requests_.get(), request + "\n");
}

std::vector<std::string> TesterProcess::hear() {
  const bool open = read_more(answers_.get(), bytes_);
  std::vector<std::string> lines = take_lines(bytes_);
  if (!open) {
    answers_.reset();
    lines.emplace_back();
  }
  return lines;
}

void TesterProcess::let_go(std::chrono::milliseconds patience) {
  requests_.reset();
  if (child_) (void)child_->wait(patience);
}

std::vector<std::string> take_lines(std::string& bytes) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  for (std::size_t end = 0; (end = bytes.find('\n', from)) != std::string::npos; from = end + 1) {
    lines.push_back(bytes.substr(from, end - from));
  }
  bytes.erase(0, from);
  return lines;
}

bool read_more(int fd, std::string& bytes) {
  constexpr std::size_t kMostLine = std::size_t{1} << 20;
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  bytes.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 && bytes.size() <= kMostLine;
}

}  // namespace mlenv::job
