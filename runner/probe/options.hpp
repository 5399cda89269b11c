#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace mlenv::probe {

struct Options {
  bool nccl = false;
  bool across = false;  ///< with the ranks of other nodes (meeting.hpp); nothing else is measured
  std::string nccl_library;       ///< a path; empty: where the loader and mlenv's images have it
  std::uint64_t mebibytes = 256;  ///< of each copy; 1 to 16384
  std::chrono::seconds timeout{120};  ///< 1 to 86400
};

/// `--nccl`, `--across`, `--nccl-library FILE`, `--size MIB`, `--timeout SECONDS`. Throws
/// std::invalid_argument with what is wrong.
Options parse_options(const std::vector<std::string>& words);
/// The words that give them.
std::vector<std::string> words_of(const Options& options);

}  // namespace mlenv::probe
