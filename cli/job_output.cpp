#include "cli/job_output.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "base/files.hpp"

namespace mlenv::cli {
namespace {

/// A line without an end is shown in pieces of this size.
constexpr std::size_t kLongest = std::size_t{16} << 10U;

}  // namespace

std::string rank_prefix(std::uint64_t rank, std::uint64_t world) {
  const std::size_t width = fmt::formatted_size("{}", world == 0 ? 0 : world - 1);
  return fmt::format("{:>{}}: ", rank, width);
}

void JobOutput::begin(std::uint64_t world) {
  flush();
  world_ = world;
}

void JobOutput::show(std::uint64_t rank, std::string_view line) {
  const std::optional<LogLine> parsed = parse_log_line(line);
  if (!parsed) return;
  const Key key{rank, parsed->stream};
  std::string& text = begun_[key];
  if (timestamps_ && text.empty()) text.append(parsed->time).push_back(' ');
  text += parsed->text;
  if (!parsed->ends && text.size() < kLongest && world_ > 1) return;
  if (parsed->ends || world_ > 1) text += '\n';
  write(key, std::move(text));
  begun_.erase(key);
}

void JobOutput::flush() {
  for (auto& [key, text] : begun_) write(key, std::move(text) + "\n");
  begun_.clear();
}

void JobOutput::write(const Key& key, std::string text) const {
  std::string whole;
  if (world_ > 1) {
    const std::string prefix = rank_prefix(key.rank, world_);
    whole = color_ ? fmt::format("\x1b[2m{}\x1b[0m", prefix) : prefix;
  }
  whole += key.stream == LogStream::remark ? "mlenv: " + text : text;
  const int fd = key.stream == LogStream::out ? STDOUT_FILENO : STDERR_FILENO;
  write_all(fd, as_bytes(whole));
}

}  // namespace mlenv::cli
