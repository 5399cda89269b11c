#pragma once
// Standard output and standard error for somebody who must not wait: a pager, a stopped terminal or
// a slow pipe keeps text waiting here, and nobody else.
#include <poll.h>
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::job {

class PatientStreams {
 public:
  /// `most_bytes`: so many may wait for each stream; what comes then is left out, and told of.
  explicit PatientStreams(std::uint64_t most_bytes = std::uint64_t{64} << 20U,
                          std::array<int, 2> fds = {1, 2});

  void add(bool to_out, std::string_view text);
  /// What to wait for, appended: two, of which one without text is -1.
  void add_to(std::vector<pollfd>& fds) const;
  /// The same two, as poll(2) left them: writes what finds room without waiting.
  void write(const pollfd* seen);
  /// Waits until all is written, or cannot be: nobody reads any more, or the disk is full. Of
  /// standard output base/standard_output.hpp knows the latter.
  void finish();

 private:
  struct Stream {
    int fd = -1;
    std::size_t piece = 0;  ///< so much finds room at once where poll(2) says that some does
    std::deque<std::string> waiting{};
    std::size_t done = 0;  ///< of the first
    std::uint64_t bytes = 0;
    std::uint64_t dropped = 0;  ///< bytes, since the last that was taken
    bool broken = false;        ///< nobody reads
  };
  static void write_some(Stream& stream, std::size_t most);

  std::uint64_t most_bytes_;
  std::array<Stream, 2> streams_;
};

}  // namespace mlenv::job
