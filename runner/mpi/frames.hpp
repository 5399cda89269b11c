#pragma once
// What the containers of an MPI job say to each other: a remote shell without ssh. Whoever accepts
// a connection begins with a number that it uses once (`nonce`); the other side asks for one thing,
// with a message authentication code (HMAC, RFC 2104) of that number and what it asks, by the job's
// secret. So the secret is never sent, and what was overheard cannot be asked again. What is said
// after that is as private as what MPI itself says on that network.
//
// A frame: a letter, four bytes of length (the highest first), and so many bytes.
#include <optional>
#include <string>
#include <string_view>

namespace mlenv::mpi {

enum class FrameKind : char {
  nonce = 'N',
  command = 'C',  ///< for `sh -c`; with a code in front
  report = 'R',   ///< a rank failed: RankFailure; with a code in front
  input = 'I',    ///< of the command's standard input
  input_end = 'F',
  signal = 'S',  ///< for the command: its number
  output = 'O',
  error = 'E',
  ended = 'X',    ///< the command's status
  refused = 'D',  ///< why
};

struct Frame {
  FrameKind kind = FrameKind::nonce;
  std::string payload;
  friend bool operator==(const Frame&, const Frame&) = default;
};

/// Throws `bad-stream` for more than 16 MiB.
std::string render_frame(FrameKind kind, std::string_view payload);

class FrameReader {
 public:
  void take(std::string_view bytes) { bytes_.append(bytes); }
  /// Of those to come, instead of 16 MiB: strangers are believed less.
  void allow(std::size_t payload) { most_ = payload; }
  /// nullopt: there is no whole one yet. Throws `bad-stream` for what is too long or of no kind.
  std::optional<Frame> next();

  static constexpr std::size_t kMostPayload = std::size_t{16} << 20;

 private:
  std::string bytes_;
  std::size_t most_ = kMostPayload;
};

/// HMAC-SHA256 in hex.
std::string hmac_of(std::string_view secret, std::string_view message);

/// The frame with which something is asked for.
std::string render_request(FrameKind kind, std::string_view payload, std::string_view nonce,
                           std::string_view secret);
/// What it asks for; nullopt: whoever asks does not know the secret.
std::optional<std::string> request_in(const Frame& frame, std::string_view nonce,
                                      std::string_view secret);

/// 64 hex digits that nobody can guess.
std::string fresh_secret();

/// How a rank of MPI failed.
struct RankFailure {
  int rank = 0;
  int status = 0;  ///< as a shell has it: 128+n after signal n
  friend bool operator==(const RankFailure&, const RankFailure&) = default;
};
std::string render_failure(const RankFailure& failure);
/// nullopt: it is none.
std::optional<RankFailure> parse_failure(std::string_view text);
/// `MPI rank 3 ended with status 7`, `… was ended by signal 11 (SIGSEGV)`.
std::string failure_text(const RankFailure& failure);

}  // namespace mlenv::mpi
