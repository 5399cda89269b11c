#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kLogReadBytes = std::size_t{256} << 10;
constexpr std::size_t kNameDigits = 20;

/// nullopt for a name that is no log file's.
std::optional<std::uint64_t> log_file_number(const fs::path& path) {
  const std::string name = path.filename().string();
  const bool digits = name.size() == kNameDigits &&
                      std::all_of(name.begin(), name.end(), is_digit) && name.front() == '0';
  return digits ? std::optional<std::uint64_t>(std::stoull(name)) : std::nullopt;
}

std::uint64_t output_in(std::string_view text) {
  const std::optional<LogLine> line = parse_log_line(text);
  if (!line || line->stream == LogStream::remark) return 0;
  return line->text.size() + (line->ends ? 1 : 0);
}

}  // namespace

std::optional<std::string> LogReader::next() {
  while (true) {
    const std::size_t end = buffer_.find('\n', in_buffer_);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(in_buffer_, end - in_buffer_);
      at_ += line.size() + 1;
      in_buffer_ = end + 1;
      output_ += output_in(line);
      return line;
    }
    if (!take_from_file() && !next_file()) return std::nullopt;
  }
}

/// What is not a whole line yet is read again: the writer may have taken it back.
bool LogReader::take_from_file() {
  if (!fd_) return false;
  const bool grows = in_buffer_ == 0 && buffer_.size() >= kLogReadBytes;
  const std::size_t size = grows ? buffer_.size() * 2 : kLogReadBytes;
  buffer_.resize(size);
  in_buffer_ = 0;
  ssize_t count = 0;
  while ((count = ::pread(fd_.get(), buffer_.data(), size, static_cast<off_t>(at_))) < 0 &&
         errno == EINTR) {
  }
  buffer_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  const bool has_line = buffer_.find('\n') != std::string::npos;
  const bool may_have_more = buffer_.size() == size;
  if (!has_line && !may_have_more) buffer_.clear();
  return has_line || may_have_more;
}

/// The next one exists only when the one before is finished, so that one more look at that is the
/// last.
bool LogReader::next_file() {
  for (const fs::path& path : list_folder(folder_)) {
    const std::optional<std::uint64_t> number = log_file_number(path);
    if (!number || (file_ && *number <= *file_)) continue;
    if (take_from_file()) return true;
    Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd) continue;  // dropped meanwhile
    fd_ = std::move(fd);
    file_ = *number;
    at_ = 0;
    buffer_.clear();
    in_buffer_ = 0;
    if (*number > output_) dropped_ += *number - output_;
    output_ = *number;
    return true;
  }
  return false;
}

}  // namespace mlenv
