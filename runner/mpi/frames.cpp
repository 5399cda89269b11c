#include "runner/mpi/frames.hpp"

#include <sys/random.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <span>

#include <fmt/core.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/process.hpp"
#include "base/secrets.hpp"
#include "runner/local/life.hpp"

namespace mlenv::mpi {
namespace {

constexpr std::size_t kHeader = 5;
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kCodeDigits = 2 * kSecretBytes;  // hex digits
constexpr std::string_view kKinds = "NCRIFSOEXD";

std::string bytes_of_hex(std::string_view hex) {
  constexpr int kHexadecimal = 16;
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, value, kHexadecimal);
    bytes.push_back(static_cast<char>(value));
  }
  return bytes;
}

std::string code_of(FrameKind kind, std::string_view payload, std::string_view nonce,
                    std::string_view secret) {
  std::string message{nonce};
  message += static_cast<char>(kind);
  message += payload;
  return hmac_of(secret, message);
}

}  // namespace

std::string render_frame(FrameKind kind, std::string_view payload) {
  if (payload.size() > FrameReader::kMostPayload) {
    throw failure("bad-stream", "{} bytes are more than one frame takes", payload.size());
  }
  std::string frame(1, static_cast<char>(kind));
  for (const int shift : {24, 16, 8, 0}) {
    frame.push_back(static_cast<char>(payload.size() >> shift & 0xFFU));
  }
  return frame.append(payload);
}

std::optional<Frame> FrameReader::next() {
  if (bytes_.size() < kHeader) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 1; i < kHeader; ++i) {
    length = length << 8U | static_cast<unsigned char>(bytes_[i]);
  }
  if (length > most_ || kKinds.find(bytes_[0]) == std::string_view::npos) {
    throw failure("bad-stream", "what came is not of this program's making");
  }
  if (bytes_.size() < kHeader + length) return std::nullopt;
  Frame frame{static_cast<FrameKind>(bytes_[0]), bytes_.substr(kHeader, length)};
  bytes_.erase(0, kHeader + length);
  return frame;
}

std::string hmac_of(std::string_view secret, std::string_view message) {
  constexpr std::size_t kBlock = 64;
  constexpr char kInner = 0x36;
  constexpr char kOuter = 0x5c;
  std::string key{secret};
  if (key.size() > kBlock) key = bytes_of_hex(Digest::of(key).hex());
  key.resize(kBlock, '\0');
  std::string inner = key;
  std::string outer = key;
  for (char& c : inner) c = static_cast<char>(c ^ kInner);
  for (char& c : outer) c = static_cast<char>(c ^ kOuter);
  return Digest::of(outer + bytes_of_hex(Digest::of(inner.append(message)).hex())).hex();
}

std::string render_request(FrameKind kind, std::string_view payload, std::string_view nonce,
                           std::string_view secret) {
  return render_frame(kind, code_of(kind, payload, nonce, secret).append(payload));
}

std::optional<std::string> request_in(const Frame& frame, std::string_view nonce,
                                      std::string_view secret) {
  if (frame.kind != FrameKind::command && frame.kind != FrameKind::report) return std::nullopt;
  if (frame.payload.size() < kCodeDigits) return std::nullopt;
  std::string payload = frame.payload.substr(kCodeDigits);
  const std::string expected = code_of(frame.kind, payload, nonce, secret);
  if (!same_secret(expected, std::string_view(frame.payload).substr(0, kCodeDigits))) {
    return std::nullopt;
  }
  return payload;
}

std::string fresh_secret() {
  std::array<unsigned char, kSecretBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw os_error(errno, "cannot make a secret");
  }
  return Digest::from_raw(bytes).hex();
}

std::string render_failure(const RankFailure& failure) {
  return fmt::format("{} {}", failure.rank, failure.status);
}

std::optional<RankFailure> parse_failure(std::string_view text) {
  RankFailure failure;
  const char* const end = text.data() + text.size();
  const auto rank = std::from_chars(text.data(), end, failure.rank);
  if (rank.ec != std::errc{} || rank.ptr == end || *rank.ptr != ' ') return std::nullopt;
  const auto status = std::from_chars(rank.ptr + 1, end, failure.status);
  if (status.ec != std::errc{} || status.ptr != end) return std::nullopt;
  // A rank that failed has no status of its own that would be none of a failure.
  constexpr int kMostStatus = 255;
  const bool failed = failure.status > 0 && failure.status <= kMostStatus && failure.rank >= 0;
  return failed ? std::optional(failure) : std::nullopt;
}

std::string failure_text(const RankFailure& failure) {
  const std::string rank = fmt::format("MPI rank {}", failure.rank);
  const std::string name =
      failure.status > kSignalBase ? signal_name(failure.status - kSignalBase) : "";
  if (name.empty()) return fmt::format("{} ended with status {}", rank, failure.status);
  return fmt::format("{} was ended by signal {} ({})", rank, failure.status - kSignalBase, name);
}

}  // namespace mlenv::mpi
