#include "runner/job/patient_streams.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>

#include <fmt/core.h>

#include "base/process.hpp"
#include "base/standard_output.hpp"

namespace mlenv::job {
namespace {

/// A pipe with room has room for PIPE_BUF bytes (poll(2), pipe(7)), a terminal for fewer; a file
/// takes all.
std::size_t piece_of(int fd) {
  constexpr std::size_t kFile = std::size_t{1} << 20U;
  constexpr std::size_t kTerminal = 256;
  struct stat status {};
  if (::fstat(fd, &status) != 0) return kTerminal;
  if (S_ISREG(status.st_mode)) return kFile;
  return S_ISFIFO(status.st_mode) ? PIPE_BUF : kTerminal;
}

}  // namespace

PatientStreams::PatientStreams(std::uint64_t most_bytes, std::array<int, 2> fds)
    : most_bytes_(most_bytes) {
  for (std::size_t i = 0; i < fds.size(); ++i) {
    streams_.at(i).fd = fds.at(i);
    streams_.at(i).piece = piece_of(fds.at(i));
  }
}

void PatientStreams::add(bool to_out, std::string_view text) {
  Stream& stream = streams_.at(to_out ? 0 : 1);
  if (stream.broken || text.empty()) return;
  if (stream.bytes + text.size() > most_bytes_) {
    stream.dropped += text.size();
    return;
  }
  std::string whole;
  if (stream.dropped > 0) {
    whole = fmt::format(
        "mlenv: {} bytes are left out here, since nobody read them; `mlenv logs` "
        "has them\n",
        std::exchange(stream.dropped, 0));
  }
  whole += text;
  stream.bytes += whole.size();
  stream.waiting.push_back(std::move(whole));
}

void PatientStreams::add_to(std::vector<pollfd>& fds) const {
  for (const Stream& stream : streams_) {
    fds.push_back({stream.waiting.empty() ? -1 : stream.fd, POLLOUT, 0});
  }
}

void PatientStreams::write(const pollfd* seen) {
  for (Stream& stream : streams_) {
    pollfd state = *seen++;
    constexpr int kMostPieces = 64;  // then others have their turn
    for (int i = 0; i < kMostPieces && state.revents != 0 && !stream.waiting.empty(); ++i) {
      write_some(stream, stream.piece);
      state = {stream.fd, POLLOUT, 0};
      if (::poll(&state, 1, 0) < 0) break;
    }
  }
}

void PatientStreams::finish() {
  for (Stream& stream : streams_) {
    while (!stream.waiting.empty()) write_some(stream, SIZE_MAX);
  }
}

void PatientStreams::write_some(Stream& stream, std::size_t most) {
  const std::string& first = stream.waiting.front();
  const std::string_view rest = std::string_view(first).substr(stream.done, most);
  const ssize_t count = write_quietly(stream.fd, rest);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
    // Another has made it one that does not wait (O_NONBLOCK is the file's).
    pollfd ready{stream.fd, POLLOUT, 0};
    constexpr int kShort = 50;  // milliseconds
    if (errno == EAGAIN) (void)::poll(&ready, 1, kShort);
    return;
  }
  if (count <= 0) {
    // The job goes on, and its ranks' output is kept; the program says at its end what was lost.
    if (count < 0 && errno != EPIPE && stream.fd == STDOUT_FILENO) answer_failed(errno);
    stream.broken = true;
    stream.waiting.clear();
    return;
  }
  stream.done += static_cast<std::size_t>(count);
  if (stream.done < first.size()) return;
  stream.bytes -= first.size();
  stream.done = 0;
  stream.waiting.pop_front();
}

}  // namespace mlenv::job
