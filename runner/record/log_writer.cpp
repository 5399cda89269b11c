#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "runner/record/run_log.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kFiles = 4;
constexpr std::uint64_t kSmallestFile = 4096;

constexpr std::array<std::string_view, 3> kLogStreams = {"out", "err", "mlenv"};

std::string log_file_name(std::uint64_t before) { return fmt::format("{:020}", before); }

}  // namespace

fs::path log_folder(const fs::path& run_folder) { return run_folder / "log"; }

std::string render_log_line(const LogLine& line) {
  return fmt::format("{} {} {} {}\n", line.time,
                     kLogStreams.at(static_cast<std::size_t>(line.stream)), line.ends ? 'F' : 'P',
                     line.text);
}

std::optional<LogLine> parse_log_line(std::string_view text) {
  LogLine line;
  const auto word = [&](std::string_view& into) {
    const std::size_t end = text.find(' ');
    if (end == std::string_view::npos) return false;
    into = text.substr(0, end);
    text.remove_prefix(end + 1);
    return true;
  };
  std::string_view stream;
  std::string_view ends;
  if (!word(line.time) || !word(stream) || !word(ends)) return std::nullopt;
  const auto found = std::find(kLogStreams.begin(), kLogStreams.end(), stream);
  if (found == kLogStreams.end() || (ends != "F" && ends != "P")) return std::nullopt;
  line.stream = static_cast<LogStream>(found - kLogStreams.begin());
  line.ends = ends == "F";
  line.text = text;
  return line;
}

LogWriter::LogWriter(fs::path folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_per_file_(std::max(most_bytes / kFiles, kSmallestFile)) {
  make_own_folders(folder_);
}

void LogWriter::write(LogStream stream, std::string_view bytes) {
  const bool is_output = stream != LogStream::remark;
  if (is_output) hashes_.at(static_cast<std::size_t>(stream)).write(as_bytes(bytes));
  const std::string time = utc_text(std::chrono::system_clock::now());
  std::string text;
  std::vector<Piece> pieces;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const bool ends = end != std::string_view::npos;
    const std::size_t taken = ends ? end + 1 : bytes.size();
    text += render_log_line({time, stream, ends, bytes.substr(0, ends ? end : taken)});
    pieces.push_back({text.size(), is_output ? taken : 0});
    bytes.remove_prefix(taken);
  }
  remark_loss();
  append(text, pieces);
}

void LogWriter::copy(std::string_view line) {
  const std::optional<LogLine> parsed = parse_log_line(line);
  if (!parsed) return;
  const bool is_output = parsed->stream != LogStream::remark;
  if (is_output) {
    Sha256& hash = hashes_.at(static_cast<std::size_t>(parsed->stream));
    hash.write(as_bytes(parsed->text));
    if (parsed->ends) hash.write(as_bytes("\n"));
  }
  remark_loss();
  const std::string text = std::string(line) + "\n";
  append(text, {{text.size(), is_output ? parsed->text.size() + (parsed->ends ? 1 : 0) : 0}});
}

bool LogWriter::append(const std::string& text, const std::vector<Piece>& pieces) {
  std::size_t kept = 0;
  if (has_room_for(text.size())) {
    const std::size_t count = written(text);
    for (const Piece& piece : pieces) {
      if (piece.end <= count) kept = piece.end;
    }
    // Half a line stays for nobody to read.
    if (count > kept && ::ftruncate(fd_.get(), static_cast<off_t>(size_ + kept)) != 0) fd_.reset();
    size_ += kept;
  }
  for (const Piece& piece : pieces) {
    (piece.end > kept ? lost_ : before_) += piece.output;
  }
  return kept == text.size();
}

std::size_t LogWriter::written(std::string_view text) const {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

bool LogWriter::has_room_for(std::size_t size) {
  if (fd_ && size_ + size <= most_per_file_) return true;
  if (fd_ && size_ == 0) return true;
  return begin_file();
}

bool LogWriter::begin_file() {
  drop_oldest();
  Fd fd{::open((folder_ / log_file_name(before_)).c_str(),
               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  // With neither, what comes is lost; it is tried again with the next.
  if (!fd) return static_cast<bool>(fd_);
  struct stat status {};
  size_ = ::fstat(fd.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  fd_ = std::move(fd);
  return true;
}

void LogWriter::drop_oldest() const {
  try {
    const std::vector<fs::path> files = list_folder(folder_);
    for (std::size_t i = 0; i + kFiles <= files.size(); ++i) ::unlink(files[i].c_str());
  } catch (const Error& error) {
    log::debug("old output stays: {}", error.what());
  }
}

void LogWriter::remark_loss() {
  if (lost_ == 0) return;
  const std::string text = render_log_line(
      {utc_text(std::chrono::system_clock::now()), LogStream::remark, true,
       fmt::format("{} bytes of output found no room on the disk and are lost", lost_)});
  if (!append(text, {{text.size(), 0}})) return;
  lost_in_all_ += std::exchange(lost_, 0);
}

RecordedLog LogWriter::finish() {
  remark_loss();
  RecordedLog output;
  output.lost_bytes = lost_in_all_ + lost_;
  output.out = {hashes_[0].size_bytes(), ""};
  output.out.digest = hashes_[0].finish().str();
  output.err = {hashes_[1].size_bytes(), ""};
  output.err.digest = hashes_[1].finish().str();
  return output;
}

}  // namespace mlenv
