#pragma once
// What a job's controller and the agent on a node say to each other.
//
// The agent begins with a line, kStreamMarker and the version of this protocol, so that whatever a
// login shell prints before it is told from it. Then frames in both directions: four bytes of
// length (the lowest first), one that says what it is, and that: a record as CBOR, bytes of a blob,
// or a line of a rank's log. Both ends may be of different versions of mlenv: members that one does
// not know are not read, and what is not there is as the struct has it.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "runner/job/node_link.hpp"

namespace mlenv::job {

inline constexpr std::uint64_t kProtocol = 1;
inline constexpr std::string_view kStreamMarker = "MLENV-NODE-STREAM/";

// --- to the node -----------------------------------------------------------------------------

/// First of all.
struct Meet {
  std::uint64_t protocol = kProtocol;
  std::string job;
  std::uint64_t ports = 0;
  std::uint64_t beat_ms = 0;
  std::uint64_t silence_ms = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("protocol", self.protocol);
    visit("job", self.job);
    visit("ports", self.ports);
    visit("beat_ms", self.beat_ms);
    visit("silence_ms", self.silence_ms);
  }
};

struct AskFacts {
  template <class Self, class Visit>
  static void fields(Self& /*self*/, Visit&& /*visit*/) {}
};

struct AskPorts {
  std::uint64_t count = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("count", self.count);
  }
};

struct OfferedBlob {
  std::string digest;
  std::uint64_t size_bytes = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
    visit("size_bytes", self.size_bytes);
  }
};

/// Answered by Want.
struct OfferImage {
  std::string digest;
  std::string manifest;
  std::string config;
  std::vector<OfferedBlob> layers;
  std::vector<std::string> names{};  ///< that it is to have there
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
    visit("manifest", self.manifest);
    visit("config", self.config);
    visit("layers", self.layers);
    visit("names", self.names);
  }
};

/// The same for the job's code, an archive.
struct OfferCode {
  OfferedBlob archive;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("archive", self.archive);
  }
};

/// BlobBytes that follow are of this blob. Of an image's they are `bytes` bytes from `offset`,
/// whole pieces (images/partial_blob.hpp); of the code's and of a list's all of it; of a data set's
/// they are the part of a file that comes next.
struct BeginBlob {
  std::string during;  ///< `image`, `code`, `list`, `data`
  OfferedBlob blob;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("during", self.during);
    visit("blob", self.blob);
    visit("offset", self.offset);
    visit("bytes", self.bytes);
  }
};

struct BlobBytes {
  std::string bytes;
};

/// What was begun does not come to its end, nor anything else of that request.
struct GiveUp {
  std::string during;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("during", self.during);
  }
};

/// Other nodes will fetch pieces there who know the token. Answered by Serving.
struct ServePeers {
  std::string token;
  std::string address;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("token", self.token);
    visit("address", self.address);
  }
};

/// A piece of a blob of the image that was offered last, from another node. Answered by
/// PieceArrived or PieceFailed.
struct FetchPiece {
  std::string address;
  std::uint16_t port = 0;
  std::string digest;
  std::uint64_t piece = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("address", self.address);
    visit("port", self.port);
    visit("digest", self.digest);
    visit("piece", self.piece);
  }
};

/// A registry that has the image's layers, and what it wants to hear (RegistryGrant). In place of
/// what was said before.
struct UseRegistry {
  std::string blobs;          ///< URL of a blob, without its digest
  std::string authorization;  ///< secret; empty: nothing
  bool any_certificate = false;
  std::uint64_t serial = 0;  ///< of the authorization
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("blobs", self.blobs);
    visit("authorization", self.authorization);
    visit("any_certificate", self.any_certificate);
    visit("serial", self.serial);
  }
};

/// Pieces of a blob of the image that was offered last, from that registry. Answered by
/// PieceArrived for each that comes, and by RangeEnded.
struct FetchRange {
  std::string digest;
  std::uint64_t first = 0;
  std::uint64_t pieces = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
    visit("first", self.first);
    visit("pieces", self.pieces);
  }
};

/// RankStart as its parts' own forms.
struct StartRank {
  std::uint64_t rank = 0;
  std::string record;  ///< run_record.hpp
  std::string run;     ///< stage.hpp
  bool code_as_project = false;
  std::uint64_t most_log_bytes = 0;
  std::string gpus{};
  std::string hosts{};      ///< as RankStart has it
  std::string mpi_hosts{};  ///< the same
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("record", self.record);
    visit("run", self.run);
    visit("code_as_project", self.code_as_project);
    visit("most_log_bytes", self.most_log_bytes);
    visit("gpus", self.gpus);
    visit("hosts", self.hosts);
    visit("mpi_hosts", self.mpi_hosts);
  }
};

/// Answered, for each set in turn, by DataAt, or by WantData as long as files of it are lacking.
struct OfferData {
  std::vector<DataSet> sets;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("sets", self.sets);
  }
};

struct SignalRank {
  std::uint64_t rank = 0;
  std::uint64_t signal = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("signal", self.signal);
  }
};

struct StopRank {
  std::uint64_t rank = 0;
  std::uint64_t grace_ms = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("grace_ms", self.grace_ms);
  }
};

/// Of a preflight (link_test.hpp); an empty one: it is over.
struct LinkTest {
  std::string request;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
  }
};

/// Of storage that has a name (storage_test.hpp); an empty one: it is over.
struct TestStorage {
  std::string request;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
  }
};

struct Bye {
  template <class Self, class Visit>
  static void fields(Self& /*self*/, Visit&& /*visit*/) {}
};

// --- both ways -------------------------------------------------------------------------------

/// I am there.
struct Beat {
  template <class Self, class Visit>
  static void fields(Self& /*self*/, Visit&& /*visit*/) {}
};

// --- from the node ---------------------------------------------------------------------------

struct Hello {
  NodeHello hello;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("hello", self.hello);
  }
};

/// Pieces of a blob that are there already: a digit for each, 0 or 1.
struct KeptPieces {
  std::string digest;
  std::string pieces;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
    visit("pieces", self.pieces);
  }
};

/// Blobs that its store lacks, of what was offered.
struct Want {
  std::string during;
  std::vector<OfferedBlob> blobs;
  std::vector<KeptPieces> kept{};  ///< of those that were begun before
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("during", self.during);
    visit("blobs", self.blobs);
    visit("kept", self.kept);
  }
};

/// To ServePeers: where; 0: it cannot.
struct Serving {
  std::uint16_t port = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("port", self.port);
  }
};

/// All of a piece is there, from wherever.
struct PieceArrived {
  std::string digest;
  std::uint64_t piece = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
    visit("piece", self.piece);
  }
};

/// Another node did not give it.
struct PieceFailed {
  std::string address;
  std::uint16_t port = 0;
  std::string digest;
  std::uint64_t piece = 0;
  std::string why;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("address", self.address);
    visit("port", self.port);
    visit("digest", self.digest);
    visit("piece", self.piece);
    visit("why", self.why);
  }
};

/// Nothing more comes of a FetchRange.
struct RangeEnded {
  std::string digest;
  std::uint64_t first = 0;
  std::uint64_t pieces = 0;
  std::string how;            ///< empty: all came; else one of kRange…
  std::string why{};          ///< in words
  std::uint64_t serial = 0;   ///< of the authorization that it was asked for with
  bool gives_ranges = false;  ///< parts of a blob are to be had there
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
    visit("first", self.first);
    visit("pieces", self.pieces);
    visit("how", self.how);
    visit("why", self.why);
    visit("serial", self.serial);
    visit("gives_ranges", self.gives_ranges);
  }
};
inline constexpr std::string_view kRangeUnauthorized = "unauthorized";  ///< 401
inline constexpr std::string_view kRangeBroken = "broken";    ///< another time it may come
inline constexpr std::string_view kRangeRefused = "refused";  ///< it never will

/// What others gave of it was not it: none of its pieces is there any more.
struct BlobSpoilt {
  std::string digest;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
  }
};

struct Ready {
  std::string during;
  std::string digest;  ///< as the node computed it
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("during", self.during);
    visit("digest", self.digest);
  }
};

struct FactsText {
  std::string facts;  ///< mlenv.facts/1
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("facts", self.facts);
  }
};

struct FreePorts {
  std::vector<std::uint16_t> ports;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("ports", self.ports);
  }
};

struct RankStarted {
  std::uint64_t rank = 0;
  std::string run;  ///< id of the record
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("run", self.run);
  }
};

struct RankLine {
  std::uint64_t rank = 0;
  std::string line;
};

struct RankUsed {
  std::uint64_t rank = 0;
  RankUse use;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("use", self.use);
  }
};

struct RankEnded {
  std::uint64_t rank = 0;
  std::uint64_t exit_code = 0;
  std::optional<std::uint64_t> signal;
  bool out_of_memory = false;
  std::optional<RunFailure> failure;
  std::string record;
  std::string ended_by_node{};
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("exit_code", self.exit_code);
    visit("signal", self.signal);
    visit("out_of_memory", self.out_of_memory);
    visit("failure", self.failure);
    visit("record", self.record);
    visit("ended_by_node", self.ended_by_node);
  }
};

/// Files of a data set, by their number in its list.
struct DataRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("first", self.first);
    visit("count", self.count);
  }
};

/// They are to be sent in this order, the first one from `offset`: a BeginBlob (`data`) and
/// BlobBytes for each part.
struct WantData {
  std::string digest;
  std::vector<DataRange> ranges;
  std::uint64_t offset = 0;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
    visit("ranges", self.ranges);
    visit("offset", self.offset);
  }
};

/// The node has it.
struct DataAt {
  DataPlace place;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("place", self.place);
  }
};

/// An Error, carried.
struct Failed {
  std::string during;
  std::uint64_t kind = 0;
  std::string code;
  std::vector<std::string> frames;
  std::string hint;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("during", self.during);
    visit("kind", self.kind);
    visit("code", self.code);
    visit("frames", self.frames);
    visit("hint", self.hint);
  }
  static Failed of(std::string during, const Error& error);
  Error error() const;
};

/// Empty: what measures has ended.
struct LinkTested {
  std::string answer;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("answer", self.answer);
  }
};

/// Empty: what looks at storage has ended.
struct StorageTested {
  std::string answer;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("answer", self.answer);
  }
};

/// The agent ends, and why.
struct Leaving {
  std::string why;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("why", self.why);
  }
};

using Message =
    std::variant<Beat, Meet, AskFacts, AskPorts, OfferImage, OfferCode, BeginBlob, BlobBytes,
                 GiveUp, StartRank, SignalRank, StopRank, Bye, Hello, Want, Ready, FactsText,
                 FreePorts, RankStarted, RankLine, RankEnded, Failed, Leaving, ServePeers,
                 FetchPiece, Serving, PieceArrived, PieceFailed, BlobSpoilt, LinkTest, LinkTested,
                 RankUsed, OfferData, WantData, DataAt, UseRegistry, FetchRange, RangeEnded,
                 TestStorage, StorageTested>;

/// With its length in front. Throws `bad-stream` for one that is too large to be sent.
std::string render_message(const Message& message);

/// The line with which the agent begins.
std::string stream_marker();

/// Messages out of a stream of bytes, however they are cut.
class MessageReader {
 public:
  /// `after_marker`: what stands before the agent's first line is skipped (at most 64 KiB).
  explicit MessageReader(bool after_marker) : waits_for_marker_(after_marker) {}

  void take(std::string_view bytes);
  /// The next whole one; nullopt: there is none yet. Throws `bad-stream`, once and for all, for
  /// bytes that are no messages, `node-version` for an agent of another protocol.
  std::optional<Message> next();
  /// The agent's first line has come.
  bool begun() const { return !waits_for_marker_; }
  /// What came in its place, as far as it can be shown.
  std::string noise() const;

 private:
  bool find_marker();

  std::string bytes_;
  std::size_t at_ = 0;  ///< in the bytes: all before was given out
  bool waits_for_marker_;
};

}  // namespace mlenv::job
