#include "runner/job/messages.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/printable.hpp"
#include "base/record_json.hpp"
#include "runner/job/message_rules.hpp"
#include "runner/job/misunderstood.hpp"
#include "runner/job/record_scan.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kRankBytes = 8;
/// More than any message needs that has no large part, and than is sent of a blob or a log at once.
constexpr std::size_t kMostFrame = std::size_t{1} << 20;
/// An image's manifest and config, a record with its host's facts.
constexpr std::size_t kMostLargeFrame = std::size_t{24} << 20;
constexpr std::size_t kMostNoise = std::size_t{64} << 10;

constexpr char kRecordFrame = 'R';
constexpr char kLargeFrame = 'M';  ///< a record, too
constexpr char kBytesFrame = 'B';
constexpr char kLineFrame = 'L';

/// By index in Message; empty: it has a frame of its own.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kMessageNames = {
    "beat",        "meet",        "ask_facts",    "ask_ports",
    "offer_image", "offer_code",  "begin_blob",   "",
    "give_up",     "start_rank",  "signal_rank",  "stop_rank",
    "bye",         "hello",       "want",         "ready",
    "facts",       "ports",       "started",      "",
    "ended",       "failed",      "leaving",      "serve",
    "fetch",       "serving",     "arrived",      "not_fetched",
    "spoilt",      "link_test",   "link_tested",  "used",
    "offer_data",  "want_data",   "data_at",      "use_registry",
    "fetch_range", "range_ended", "test_storage", "storage_tested"};
constexpr std::array<std::string_view, 4> kLargeMessages = {"offer_image", "start_rank", "facts",
                                                            "ended"};

bool may_be_large(std::string_view name) {
  return std::find(kLargeMessages.begin(), kLargeMessages.end(), name) != kLargeMessages.end();
}
std::size_t most_of(char kind) { return kind == kLargeFrame ? kMostLargeFrame : kMostFrame; }

void append_number(std::string& text, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    text += static_cast<char>((number >> (i * kByteBits)) & 0xffU);
  }
}

std::uint64_t read_number(std::string_view text) {
  std::uint64_t number = 0;
  for (std::size_t i = text.size(); i > 0; --i) {
    number = (number << kByteBits) | static_cast<unsigned char>(text[i - 1]);
  }
  return number;
}

std::string frame(char kind, std::string_view head, std::string_view body) {
  const std::size_t size = 1 + head.size() + body.size();
  if (size > most_of(kind)) {
    throw misunderstood(fmt::format("a message of {} bytes is too large", size));
  }
  std::string text;
  text.reserve(kLengthBytes + size);
  append_number(text, size, kLengthBytes);
  text += kind;
  return text.append(head).append(body);
}

template <std::size_t Index = 0>
Message read_record_of(std::string_view name, const json& value) {
  if constexpr (Index < std::variant_size_v<Message>) {
    using One = std::variant_alternative_t<Index, Message>;
    if constexpr (Record<One>) {
      if (kMessageNames[Index] == name) {
        One record;
        RecordReader("a message", {"mlenv.node/1", "a message", ""}).read(value, "", record);
        return record;
      }
    }
    return read_record_of<Index + 1>(name, value);
  } else {
    throw misunderstood(fmt::format("`{}` is no message that this mlenv knows", printable(name)));
  }
}

Message read_record(std::string_view body, bool large) {
  if (!is_plain_record(body)) throw misunderstood("a message is malformed");
  try {
    const json value = json::from_cbor(body.begin(), body.end());
    const auto& name = value.at("say").get_ref<const std::string&>();
    if (large && !may_be_large(name)) throw misunderstood("a message is too large");
    return read_record_of(name, value.at("with"));
  } catch (const json::exception&) {
    throw misunderstood("a message is malformed");
  } catch (const Error& error) {
    if (error.code() == "bad-stream") throw;
    throw misunderstood(error.frames().back());
  }
}

Message read_frame(std::string_view text) {
  const char kind = text.front();
  const std::string_view body = text.substr(1);
  if (kind == kRecordFrame || kind == kLargeFrame) return read_record(body, kind == kLargeFrame);
  if (kind == kBytesFrame) return BlobBytes{std::string(body)};
  if (kind == kLineFrame && body.size() >= kRankBytes) {
    return RankLine{read_number(body.substr(0, kRankBytes)), std::string(body.substr(kRankBytes))};
  }
  throw misunderstood("a message is of no known kind");
}

}  // namespace

Failed Failed::of(std::string during, const Error& error) {
  return {std::move(during), static_cast<std::uint64_t>(error.kind()), error.code(), error.frames(),
          error.hint()};
}

Error Failed::error() const {
  const bool known = kind <= static_cast<std::uint64_t>(Kind::internal);
  Error error{known ? static_cast<Kind>(kind) : Kind::failed, code,
              frames.empty() ? code : frames.front()};
  for (std::size_t i = 1; i < frames.size(); ++i) error.because(frames[i]);
  if (!hint.empty()) error.hint(hint);
  return error;
}

std::string render_message(const Message& message) {
  if (const auto* bytes = std::get_if<BlobBytes>(&message)) {
    return frame(kBytesFrame, {}, bytes->bytes);
  }
  if (const auto* line = std::get_if<RankLine>(&message)) {
    std::string rank;
    append_number(rank, line->rank, kRankBytes);
    return frame(kLineFrame, rank, line->line);
  }
  const json with = std::visit(
      [](const auto& one) -> json {
        if constexpr (Record<const std::decay_t<decltype(one)>>) {
          return RecordWriter::written(one);
        } else {
          return {};
        }
      },
      message);
  const std::vector<std::uint8_t> cbor =
      json::to_cbor({{"say", kMessageNames.at(message.index())}, {"with", with}});
  const bool large = cbor.size() >= kMostFrame && may_be_large(kMessageNames.at(message.index()));
  return frame(large ? kLargeFrame : kRecordFrame, {},
               {reinterpret_cast<const char*>(cbor.data()), cbor.size()});
}

std::string stream_marker() { return fmt::format("{}{}\n", kStreamMarker, kProtocol); }

void MessageReader::take(std::string_view bytes) {
  if (at_ > 0) {
    bytes_.erase(0, at_);
    at_ = 0;
  }
  bytes_.append(bytes);
}

std::optional<Message> MessageReader::next() {
  if (waits_for_marker_ && !find_marker()) return std::nullopt;
  const std::string_view rest = std::string_view(bytes_).substr(at_);
  if (rest.size() < kLengthBytes) return std::nullopt;
  const std::uint64_t size = read_number(rest.substr(0, kLengthBytes));
  // Before the rest of it is waited for.
  const bool kind_known = rest.size() > kLengthBytes;
  if (size == 0 || size > (kind_known ? most_of(rest[kLengthBytes]) : kMostLargeFrame)) {
    throw misunderstood(fmt::format("`{}` is no message", printable(rest.substr(0, kLengthBytes))));
  }
  if (rest.size() - kLengthBytes < size) return std::nullopt;
  at_ += kLengthBytes + size;
  Message message = read_frame(rest.substr(kLengthBytes, size));
  require_sound(message);
  return message;
}

bool MessageReader::find_marker() {
  const std::size_t found = bytes_.find(kStreamMarker);
  const std::size_t end = found == std::string::npos ? found : bytes_.find('\n', found);
  if (end == std::string::npos) {
    if (bytes_.size() <= kMostNoise) return false;
    throw failure("bad-stream", "what was started on the node is no mlenv agent")
        .because(fmt::format("it wrote `{}`", noise()))
        .hint("let nothing be printed by the login shell where no terminal is");
  }
  const std::size_t number = found + kStreamMarker.size();
  const std::string version = bytes_.substr(number, end - number);
  if (version != std::to_string(kProtocol)) {
    throw failure("node-version", "the mlenv on the node speaks another version of the protocol")
        .because(fmt::format("it speaks version `{}`, this one {}", printable(version), kProtocol))
        .hint("use the same mlenv on all nodes");
  }
  bytes_.erase(0, end + 1);
  waits_for_marker_ = false;
  return true;
}

std::string MessageReader::noise() const {
  constexpr std::size_t kMostShown = 300;
  std::string_view text = bytes_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const bool cut = text.size() > kMostShown;
  if (cut) text.remove_prefix(text.size() - kMostShown);
  return (cut ? "…" : "") + printable(text);
}

}  // namespace mlenv::job
