#include "runner/job/message_rules.hpp"

#include <arpa/inet.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <type_traits>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/job/misunderstood.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kMostName = 255;
constexpr std::size_t kMostPath = 4096;
constexpr std::size_t kMostTextShown = 2048;
constexpr std::size_t kMostFrames = 32;
constexpr std::size_t kMostInterfaces = 1024;
constexpr std::size_t kMostPorts = 65535;
constexpr std::size_t kMostBlobs = 4096;
constexpr std::size_t kMostSets = 4096;
constexpr std::size_t kMostPiecesTold = std::size_t{1} << 20U;
constexpr std::uint64_t kMostGpusGiven = 4096;
constexpr std::uint64_t kMostStatusTold = 255;
constexpr std::uint64_t kMostSignalTold = 64;
/// 4 EiB: sums of two are still numbers.
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 62U;
constexpr std::uint64_t kMostMilliseconds = std::uint64_t{1} << 40U;  // 34 years
constexpr double kMostToldSeconds = 1e10;

[[noreturn]] void refuse(std::string_view what, std::string_view value) {
  constexpr std::size_t kMost = 80;
  throw misunderstood(fmt::format("{} cannot be `{}{}`", what, printable(value.substr(0, kMost)),
                                  value.size() > kMost ? "…" : ""));
}
[[noreturn]] void refuse(std::string_view what, std::uint64_t value) {
  throw misunderstood(fmt::format("{} cannot be {}", what, value));
}

void require_at_most(std::string_view what, std::uint64_t value, std::uint64_t most) {
  if (value > most) refuse(what, value);
}

bool is_one_line(std::string_view text) { return printable(text) == text; }

void require_line(std::string_view what, std::string_view text, std::size_t most = kMostPath) {
  if (text.size() > most || !is_one_line(text)) refuse(what, text);
}

/// Letters, digits and a few others; empty is allowed.
void require_word(std::string_view what, std::string_view text, std::string_view others = "._-",
                  std::size_t most = kMostName) {
  const bool fits = text.size() <= most && std::all_of(text.begin(), text.end(), [&](char c) {
                      return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
                    });
  if (!fits) refuse(what, text);
}

void require_one_of(std::string_view what, std::string_view text,
                    std::initializer_list<std::string_view> words) {
  if (std::find(words.begin(), words.end(), text) == words.end()) refuse(what, text);
}

void require_path(std::string_view what, std::string_view text) {
  if (!text.empty() && text.front() != '/') refuse(what, text);
  require_line(what, text);
}

void require_address(std::string_view what, std::string_view text) {
  if (!text.empty() && !is_address(text)) refuse(what, text);
}

void require_digest(std::string_view what, const std::string& text) {
  try {
    (void)Digest::parse(text);
  } catch (const Error&) {
    refuse(what, text);
  }
}

void require_seconds(std::string_view what, double value) {
  const bool sound =
      value >= 0 && value <= kMostToldSeconds;  // neither holds for what is no number
  if (!sound) refuse(what, fmt::format("{}", value));
}

void require_ports(const std::vector<std::uint16_t>& ports) {
  require_at_most("the number of ports", ports.size(), kMostPorts);
  if (std::find(ports.begin(), ports.end(), 0) != ports.end()) refuse("a port", 0);
}

void require_blob(const OfferedBlob& blob) {
  require_digest("a digest", blob.digest);
  require_at_most("a size", blob.size_bytes, kLargestSize);
}

// --- to the node -----------------------------------------------------------------------------

void check(const Meet& meet) {
  require_word("a job's id", meet.job);
  require_at_most("the number of ports", meet.ports, kMostPorts);
  require_at_most("the time of a beat", meet.beat_ms, kMostMilliseconds);
  require_at_most("the time of silence", meet.silence_ms, kMostMilliseconds);
}

void check(const AskPorts& ask) { require_at_most("the number of ports", ask.count, kMostPorts); }

void check(const OfferImage& image) {
  require_digest("an image's digest", image.digest);
  require_at_most("the number of layers", image.layers.size(), kMostBlobs);
  for (const OfferedBlob& one : image.layers) require_blob(one);
  require_at_most("the number of names", image.names.size(), kMostBlobs);
  for (const std::string& name : image.names) require_line("an image's name", name, 2 * kMostName);
}

void check(const OfferCode& code) { require_blob(code.archive); }

void check(const BeginBlob& begin) {
  require_one_of("what is sent", begin.during, {"image", "code", "list", "data"});
  require_blob(begin.blob);
  require_at_most("an offset", begin.offset, begin.blob.size_bytes);
  require_at_most("a length", begin.bytes, kLargestSize);
}

void check(const GiveUp& over) { require_word("what is given up", over.during); }

void check(const ServePeers& peers) {
  require_word("a token", peers.token);
  require_address("an address", peers.address);
}

void check(const FetchPiece& piece) {
  require_address("an address", piece.address);
  require_digest("a digest", piece.digest);
  require_at_most("a piece's number", piece.piece, kLargestSize);
}

void check(const UseRegistry& registry) {
  constexpr std::size_t kMostAuthorization = std::size_t{256} << 10U;
  require_line("a registry's URL", registry.blobs);
  // Not shown: it is secret.
  if (registry.authorization.size() > kMostAuthorization || !is_one_line(registry.authorization)) {
    throw misunderstood("an authorization is more than one line");
  }
}

void check(const FetchRange& range) {
  require_digest("a digest", range.digest);
  require_at_most("a piece's number", range.first, kLargestSize);
  require_at_most("a number of pieces", range.pieces, kLargestSize);
}

void check(const SignalRank& rank) {
  if (rank.signal == 0 || rank.signal > kMostSignalTold) refuse("a signal", rank.signal);
}

void check(const StopRank& rank) { require_at_most("a grace", rank.grace_ms, kMostMilliseconds); }

void check(const OfferData& data) {
  require_at_most("the number of data sets", data.sets.size(), kMostSets);
  for (const DataSet& one : data.sets) {
    require_line("a data set's name", one.name, kMostName);
    require_digest("a digest", one.digest);
    require_path("a path", one.from);
    require_path("a path", one.to);
    if (!one.list.empty()) require_digest("a digest", one.list);
    require_at_most("a size", one.list_bytes, kLargestSize);
    require_at_most("a size", one.bytes, kLargestSize);
  }
}

// --- from the node ---------------------------------------------------------------------------

/// A host's own name is shown alone where it is none (is_host_name).
void check(const Hello& message) {
  const NodeHello& hello = message.hello;
  require_at_most("the length of a host's name", hello.host.size(), kMostName);
  require_word("a version", hello.version, "._+~-");
  require_word("a boot id", hello.boot_id);
  require_path("a runtime's path", hello.runtime);
  require_word("a time", hello.clock, ":.+-");
  require_path("a store's path", hello.store);
  require_word("a store's id", hello.store_id, "._:/+=-");
  require_path("a program's path", hello.curl);
  require_at_most("the number of interfaces", hello.interfaces.size(), kMostInterfaces);
  for (const NodeHello::Interface& one : hello.interfaces) {
    constexpr std::size_t kMostInterface = 64;
    if (one.name.empty()) refuse("an interface", one.name);
    require_word("an interface", one.name, "._@+~#-", kMostInterface);
    if (!is_address(one.address)) refuse("an interface's address", one.address);
  }
  if (hello.given_gpus) require_at_most("the number of GPUs", *hello.given_gpus, kMostGpusGiven);
  require_ports(hello.ports);
}

void check(const Want& want) {
  require_one_of("what is wanted", want.during, {"image", "code", "list"});
  require_at_most("the number of blobs", want.blobs.size(), kMostBlobs);
  for (const OfferedBlob& one : want.blobs) require_blob(one);
  require_at_most("the number of blobs", want.kept.size(), kMostBlobs);
  for (const KeptPieces& one : want.kept) {
    require_digest("a digest", one.digest);
    const bool digits = one.pieces.find_first_not_of("01") == std::string::npos;
    if (!digits || one.pieces.size() > kMostPiecesTold) refuse("pieces that are kept", one.pieces);
  }
}

void check(const PieceArrived& piece) {
  require_digest("a digest", piece.digest);
  require_at_most("a piece's number", piece.piece, kLargestSize);
}

void check(const PieceFailed& piece) {
  require_address("an address", piece.address);
  require_digest("a digest", piece.digest);
  require_at_most("a piece's number", piece.piece, kLargestSize);
}

void check(const RangeEnded& range) {
  require_digest("a digest", range.digest);
  require_at_most("a piece's number", range.first, kLargestSize);
  require_at_most("a number of pieces", range.pieces, kLargestSize);
  require_one_of("how a range ended", range.how,
                 {"", kRangeUnauthorized, kRangeBroken, kRangeRefused});
}

void check(const BlobSpoilt& blob) { require_digest("a digest", blob.digest); }

void check(const Ready& ready) {
  require_one_of("what is ready", ready.during, {"image", "code"});
  require_digest("a digest", ready.digest);
}

void check(const FreePorts& ports) { require_ports(ports.ports); }

void check(const RankStarted& started) {
  require_word("a run's id", started.run);
  if (started.run.starts_with('.')) refuse("a run's id", started.run);
}

void check(const RankLine& line) {
  if (line.line.find('\n') != std::string::npos) refuse("a line of a rank", line.line);
}

void check(const RankUsed& used) {
  require_seconds("a rank's processor time", used.use.cpu_seconds);
  require_seconds("a rank's waiting time", used.use.queued_seconds);
}

void check(const RankEnded& ended) {
  require_at_most("a rank's status", ended.exit_code, kMostStatusTold);
  if (ended.signal) {
    if (*ended.signal == 0 || *ended.signal > kMostSignalTold) refuse("a signal", *ended.signal);
    if (ended.exit_code != kSignalBase + *ended.signal) {
      refuse(fmt::format("the status of a rank that signal {} ended", *ended.signal),
             ended.exit_code);
    }
  }
  if (ended.failure && ended.exit_code == 0) {
    refuse("the status of a rank that could not be run", ended.exit_code);
  }
}

void check(const WantData& want) {
  require_digest("a digest", want.digest);
  require_at_most("an offset", want.offset, kLargestSize);
  // Each file once: who is asked looks at all that stand in a range, and sends them.
  std::uint64_t next = 0;
  for (const DataRange& one : want.ranges) {
    require_at_most("a file's number", one.first, kLargestSize);
    require_at_most("a number of files", one.count, kLargestSize);
    if (one.first < next) refuse("the number of the next file", one.first);
    next = one.first + one.count;
  }
}

void check(const DataAt& at) {
  require_line("a data set's name", at.place.name, kMostName);
  if (!at.place.digest.empty()) require_digest("a digest", at.place.digest);
  require_word("how data is there", at.place.how);
  require_path("a path", at.place.path);
  require_at_most("a size", at.place.bytes, kLargestSize);
  require_at_most("a size", at.place.sent, kLargestSize);
  require_seconds("a time", at.place.seconds);
}

void check(const Failed& failed) {
  require_word("what failed", failed.during, " ._-");
  require_word("an error's code", failed.code);
  require_at_most("an error's kind", failed.kind, static_cast<std::uint64_t>(Kind::internal));
  require_at_most("the number of an error's reasons", failed.frames.size(), kMostFrames);
}

template <class One>
constexpr bool kForNodes =
    std::is_same_v<One, Meet> || std::is_same_v<One, AskFacts> || std::is_same_v<One, AskPorts> ||
    std::is_same_v<One, OfferImage> || std::is_same_v<One, OfferCode> ||
    std::is_same_v<One, BeginBlob> || std::is_same_v<One, BlobBytes> ||
    std::is_same_v<One, GiveUp> || std::is_same_v<One, StartRank> ||
    std::is_same_v<One, SignalRank> || std::is_same_v<One, StopRank> || std::is_same_v<One, Bye> ||
    std::is_same_v<One, ServePeers> || std::is_same_v<One, FetchPiece> ||
    std::is_same_v<One, LinkTest> || std::is_same_v<One, OfferData> ||
    std::is_same_v<One, UseRegistry> || std::is_same_v<One, FetchRange> ||
    std::is_same_v<One, TestStorage>;

/// The others have nothing that could be wrong here: bytes and texts, which have readers of their
/// own, and are shown as shown_text has them.
template <class Other>
void check(const Other& /*other*/) {}

}  // namespace

void require_sound(const Message& message) {
  std::visit([](const auto& one) { check(one); }, message);
}

bool is_for_nodes(const Message& message) {
  return std::visit(
      [](const auto& one) {
        using One = std::decay_t<decltype(one)>;
        return kForNodes<One>;
      },
      message);
}

bool is_address(std::string_view text) {
  const std::string copy{text};
  std::array<char, sizeof(in6_addr)> room{};
  // The copy ends where the text does: a zero byte within would hide the rest.
  return copy.find('\0') == std::string::npos &&
         (::inet_pton(AF_INET, copy.c_str(), room.data()) == 1 ||
          ::inet_pton(AF_INET6, copy.c_str(), room.data()) == 1);
}

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostName &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '.' || c == '-' || c == '_'; });
}

std::string shown_text(std::string_view text) {
  if (text.size() <= kMostTextShown) return printable(text);
  // Both ends: what went wrong often stands last.
  const std::size_t half = kMostTextShown / 2;
  return printable(text.substr(0, half)) + " … " + printable(text.substr(text.size() - half));
}

}  // namespace mlenv::job
