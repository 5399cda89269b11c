#pragma once
// What a run wrote: files in STORE/runs/ID/log, of lines `TIME STREAM END TEXT`, as
// `2026-03-01T12:00:00.250Z out F epoch 1`. STREAM is `out`, `err`, or `mlenv` for a remark of
// ours; END is F where the output had a newline, P where the line goes on with the stream's next
// one. So every byte comes back as it was, and both streams in the order in which they were read.
//
// A file's name is the count of the kept output's bytes before it, so that what was dropped is
// known. The writer only appends (to the newest), begins a new file when one is full, and removes
// the oldest; whoever reads meanwhile never sees a line change.
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {

enum class LogStream { out, err, remark };

struct LogLine {
  std::string_view time;  ///< UTC, RFC 3339 with milliseconds
  LogStream stream = LogStream::out;
  bool ends = true;  ///< the output had a newline here
  std::string_view text;
};
/// Without the newline. nullopt for what is none.
std::optional<LogLine> parse_log_line(std::string_view text);
std::string render_log_line(const LogLine& line);

fs::path log_folder(const fs::path& run_folder);

class LogWriter {
 public:
  /// Files are made in `folder`, which is made when absent. At most about `most_bytes` are kept.
  LogWriter(fs::path folder, std::uint64_t most_bytes);

  /// Never throws: what finds no room on the disk is lost, and a remark says how much when there is
  /// room again.
  void write(LogStream stream, std::string_view bytes);
  /// A line that another writer wrote (without the newline), its time and all; what is none is
  /// left out.
  void copy(std::string_view line);
  /// Digest and size of all output that was written, kept or not. The writer may then only be
  /// destroyed.
  RecordedLog finish();
  /// Bytes of output that found no room since the last remark that did.
  std::uint64_t unremarked() const { return lost_; }

 private:
  struct Piece {
    std::size_t end = 0;       ///< in the text
    std::uint64_t output = 0;  ///< bytes of output that it holds
  };
  /// Whether all of it was kept.
  bool append(const std::string& text, const std::vector<Piece>& pieces);
  bool has_room_for(std::size_t size);
  bool begin_file();
  void drop_oldest() const;
  void remark_loss();
  /// How much of it the disk took.
  std::size_t written(std::string_view text) const;

  fs::path folder_;
  std::uint64_t most_per_file_;
  Fd fd_;
  std::uint64_t size_ = 0;    ///< of the file
  std::uint64_t before_ = 0;  ///< bytes of output that found room so far
  std::uint64_t lost_ = 0;
  std::uint64_t lost_in_all_ = 0;
  std::array<Sha256, 2> hashes_;
};

class LogReader {
 public:
  explicit LogReader(fs::path folder) : folder_(std::move(folder)) {}

  /// The next line as it lies there; nullopt: there is none yet. Follows the writer from file to
  /// file.
  std::optional<std::string> next();
  /// Bytes of output that were dropped before the line that comes next and are not told of yet;
  /// then 0.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  bool take_from_file();
  bool next_file();

  fs::path folder_;
  std::optional<std::uint64_t> file_;  ///< its name
  Fd fd_;
  std::uint64_t at_ = 0;  ///< in the file: all before was given out
  std::string buffer_;
  std::size_t in_buffer_ = 0;
  std::uint64_t output_ = 0;  ///< bytes of output given out
  std::uint64_t dropped_ = 0;
};

}  // namespace mlenv
