#include "runner/job/job_output.hpp"

#include <unistd.h>
#include <cerrno>

#include <fmt/format.h>

#include "base/process.hpp"
#include "base/standard_output.hpp"
#include "runner/job/job_json.hpp"
#include "runner/job/message_rules.hpp"

namespace mlenv::job {
namespace {

/// A line without an end is shown in pieces of this size.
constexpr std::size_t kLongestPiece = std::size_t{16} << 10U;

}  // namespace

std::string rank_prefix(std::uint64_t rank, std::uint64_t world) {
  const std::size_t width = fmt::formatted_size("{}", world == 0 ? 0 : world - 1);
  return fmt::format("{:>{}}: ", rank, width);
}

void write_to_streams(bool to_out, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write_quietly(to_out ? STDOUT_FILENO : STDERR_FILENO, text);
    if (count < 0 && errno == EINTR) continue;
    if (to_out && count < 0 && errno != EPIPE) answer_failed(errno);
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void JobOutput::begin(std::uint64_t world, std::uint64_t attempt) {
  flush();
  world_ = world;
  attempt_ = attempt;
}

void JobOutput::show(std::uint64_t rank, std::string_view line) {
  if (style_.json) return show_record(rank, line);
  const std::optional<LogLine> parsed = parse_log_line(line);
  if (!parsed) return;
  const Key key{rank, parsed->stream};
  std::string& text = begun_[key];
  if (style_.timestamps && text.empty()) text.append(parsed->time).push_back(' ');
  if (parsed->stream == LogStream::remark) {
    text += shown_text(parsed->text);  // mlenv's own, of a node: it may say what it likes
  } else {
    text += parsed->text;
  }
  if (!parsed->ends && text.size() < kLongestPiece && world_ > 1) return;
  if (parsed->ends || world_ > 1) text += '\n';
  write(key, text);
  begun_.erase(key);
}

void JobOutput::show_record(std::uint64_t rank, std::string_view line) const {
  const std::string record = log_line_json(attempt_, rank, line);
  if (!record.empty()) write_(true, record + "\n");
}

void JobOutput::flush() {
  for (auto& [key, text] : begun_) write(key, text + "\n");
  begun_.clear();
}

void JobOutput::write(const Key& key, const std::string& text) const {
  std::string whole;
  if (world_ > 1) {
    const std::string prefix = rank_prefix(key.rank, world_);
    whole = style_.color ? fmt::format("\x1b[2m{}\x1b[0m", prefix) : prefix;
  }
  whole += key.stream == LogStream::remark ? "mlenv: " + text : text;
  write_(key.stream == LogStream::out, whole);
}

}  // namespace mlenv::job
