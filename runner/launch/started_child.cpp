#include "runner/launch/started_child.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kMostWords = 4096;
constexpr std::size_t kMostWordsKept = 4 * kMostWords;

Fd memory_file() {
  Fd file{::memfd_create("mlenv-words", MFD_CLOEXEC)};
  if (!file) throw os_error(errno, "cannot make a file in memory");
  // Written from where the writers are, read from anywhere.
  ::fcntl(file.get(), F_SETFL, O_APPEND);
  return file;
}

}  // namespace

std::string last_lines(std::string_view text) {
  text = trim(text);
  if (text.size() > kMostWords) {
    text.remove_prefix(text.size() - kMostWords);
    const std::size_t line = text.find('\n');
    if (line != std::string_view::npos) text.remove_prefix(line + 1);
  }
  // ssh ends its lines as a terminal wants them.
  std::string lines(text);
  std::erase(lines, '\r');
  return lines;
}

StartedChild::StartedChild(Command command, std::chrono::milliseconds most_leaving, Fd program)
    : most_leaving_(most_leaving), program_(std::move(program)), said_(memory_file()) {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  command.stdin_fd = in.read_end.get();
  command.stdout_fd = out.write_end.get();
  command.stderr_fd = said_.get();
  child_.emplace(command);
  stream_ = {std::move(in.write_end), std::move(out.read_end)};
}

StartedChild::~StartedChild() {
  stream_ = {};
  if (end_by_) return;  // ~Child kills it
  try {
    (void)child_->wait(most_leaving_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): ~Child kills it
  }
}

/// The file is open once, by whoever reads it and by us: its offset says how much was read.
ProgramSent StartedChild::program_sent() {
  struct stat file {};
  if (!program_ || ::fstat(program_.get(), &file) != 0) return {};
  const off_t at = ::lseek(program_.get(), 0, SEEK_CUR);
  return {static_cast<std::uint64_t>(std::max<off_t>(at, 0)),
          static_cast<std::uint64_t>(file.st_size)};
}

std::string StartedChild::last_words() {
  // The streams are closed: what it has to say it says now.
  if (!end_by_) (void)child_->wait(std::chrono::seconds{2});
  return last_lines(said_before_ + words_in_file());
}

bool StartedChild::gone() {
  if (child_->wait(std::chrono::milliseconds{0})) return true;
  forget_old_words();
  if (!end_by_ || Clock::now() < *end_by_) return false;
  // srun takes its step along where it is asked; what does not listen is made to.
  constexpr std::chrono::seconds kMostAsked{2};
  child_->signal(told_to_end_ ? SIGKILL : SIGTERM);
  if (!std::exchange(told_to_end_, true)) end_by_ = Clock::now() + kMostAsked;
  return child_->wait(std::chrono::milliseconds{0}).has_value();
}

void StartedChild::let_go() {
  stream_ = {};
  if (!end_by_) end_by_ = Clock::now() + most_leaving_;
}

/// A node may go on for weeks: its words must not fill the memory. What is written between the look
/// and the cut is lost.
void StartedChild::forget_old_words() {
  if (::lseek(said_.get(), 0, SEEK_END) <= static_cast<off_t>(kMostWordsKept)) return;
  said_before_ = words_in_file();
  (void)::ftruncate(said_.get(), 0);
}

std::string StartedChild::words_in_file() const {
  const auto size = static_cast<std::uint64_t>(::lseek(said_.get(), 0, SEEK_END));
  const std::uint64_t length = std::min<std::uint64_t>(size, 2 * kMostWords);
  std::string text(length, '\0');
  const ssize_t count =
      ::pread(said_.get(), text.data(), length, static_cast<off_t>(size - length));
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace mlenv::job
