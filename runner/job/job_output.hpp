#pragma once
// What ranks write, as it is shown: for a person whole lines, with the rank before each where there
// are several; as JSON a record for each line (job_json.hpp).
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "runner/record/run_log.hpp"

namespace mlenv::job {

class JobOutput {
 public:
  struct Style {
    bool color = false;
    bool timestamps = false;  ///< UTC, before each line
    bool json = false;        ///< records; nothing of the above
  };
  /// `write` gets whole lines for standard output or standard error.
  using Write = std::function<void(bool to_out, std::string_view text)>;
  JobOutput(const Style& style, Write write) : style_(style), write_(std::move(write)) {}
  /// So many ranks write from now on, in this attempt; their lines begin anew.
  void begin(std::uint64_t world, std::uint64_t attempt = 0);
  /// A line as it lies in a rank's log.
  void show(std::uint64_t rank, std::string_view line);
  /// What is left of lines that never ended.
  void flush();

 private:
  struct Key {
    std::uint64_t rank;
    LogStream stream;
    auto operator<=>(const Key&) const = default;
  };
  void show_record(std::uint64_t rank, std::string_view line) const;
  void write(const Key& key, const std::string& text) const;
  Style style_;
  Write write_;
  std::uint64_t world_ = 1;
  std::uint64_t attempt_ = 0;
  std::map<Key, std::string> begun_;
};

/// JobOutput::Write on this process's own streams; what cannot be written is lost, which
/// base/standard_output.hpp knows of standard output, but where nobody reads it.
void write_to_streams(bool to_out, std::string_view text);

/// `3: ` as wide as the largest rank's.
std::string rank_prefix(std::uint64_t rank, std::uint64_t world);

}  // namespace mlenv::job
