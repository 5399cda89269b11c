#pragma once
// What ranks write, on our streams: whole lines, with the rank before each where there are several.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runner/record/run_log.hpp"

namespace mlenv::cli {

class JobOutput {
 public:
  explicit JobOutput(bool color, bool timestamps = false)
      : color_(color), timestamps_(timestamps) {}
  /// So many ranks write from now on; their lines begin anew.
  void begin(std::uint64_t world);
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
  void write(const Key& key, std::string text) const;
  bool color_;
  bool timestamps_;
  std::uint64_t world_ = 1;
  std::map<Key, std::string> begun_;
};

/// `3: ` as wide as the largest rank's.
std::string rank_prefix(std::uint64_t rank, std::uint64_t world);

}  // namespace mlenv::cli
