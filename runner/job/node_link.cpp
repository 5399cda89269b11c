#include "runner/job/node_link.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "images/store.hpp"
#include "runner/job/beater.hpp"
#include "runner/job/blob_sender.hpp"
#include "runner/job/channel.hpp"
#include "runner/job/data_sender.hpp"
#include "runner/job/message_rules.hpp"
#include "runner/job/misunderstood.hpp"
#include "runner/local/stage.hpp"

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kImageOffer = "image";
constexpr std::string_view kDuringCode = "code";
constexpr std::string_view kLists = "list";

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

std::uint64_t milliseconds_count(milliseconds time) {
  return static_cast<std::uint64_t>(std::max<milliseconds::rep>(0, time.count()));
}

template <class Event, class... Args>
void tell_event(const Event& event, Args&&... args) {
  if (event) event(std::forward<Args>(args)...);
}

// What a node says a person may come to read: on one line, or it could speak for mlenv.

RunFailure shown_safely(const RunFailure& failure) {
  return {shown_text(failure.code), shown_text(failure.message)};
}

NodeHello shown_safely(NodeHello hello) {
  hello.host = shown_text(hello.host);
  return hello;
}

Failed shown_safely(Failed failed) {
  failed.hint = shown_text(failed.hint);
  for (std::string& frame : failed.frames) frame = shown_text(frame);
  return failed;
}

/// Each text within.
void make_shown(nlohmann::json& value) {
  if (value.is_string()) {
    value = shown_text(value.get_ref<const std::string&>());
  } else if (value.is_structured()) {
    for (nlohmann::json& one : value) make_shown(one);
  }
}

RankEnd shown_end(RankEnded&& ended) {
  if (ended.failure) ended.failure = shown_safely(*ended.failure);
  ended.ended_by_node = shown_text(ended.ended_by_node);
  return {ended.exit_code,         ended.signal,
          ended.out_of_memory,     std::move(ended.failure),
          std::move(ended.record), std::move(ended.ended_by_node)};
}

}  // namespace

struct NodeLink::Impl {
  Impl(NodeStream stream, const LinkSettings& link_settings, NodeEvents link_events, Beater* beats)
      : channel(std::move(stream), /*after_marker=*/true),
        settings(link_settings),
        events(std::move(link_events)),
        beater(beats) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (beater != nullptr) beater->remove(channel);
  }

  void take();
  void send();
  void tick();
  void hear();
  void fill();
  void lose(const std::string& why);
  std::string why_it_closed() const;
  void offer(Store& store, std::string_view during, const Message& message);
  /// Nothing is heard any more by one that is lost.
  void say(const Message& message) {
    if (!lost) channel.say(message);
  }

  void require_in_turn(const Message& message);
  void on(Message&& message);
  void on_piece(const Message& message);
  void on_want(const Want& want);
  bool on_data(const Message& message);
  void on_ready(const Ready& ready);
  void on_facts(const FactsText& text);
  void on_failed(const Failed& failed);

  Channel channel;
  LinkSettings settings;
  NodeEvents events;
  Beater* beater;
  BlobSender blobs;
  struct Offer {
    Store* store = nullptr;
    std::vector<OfferedBlob> blobs;
  };
  Offer image;
  Offer code;
  Offer lists;
  DataSender data;
  std::string leaving;
  bool met = false;
  bool said_bye = false;
  bool lost = false;
  bool has_beats = false;  ///< the beater's, while this loop is held up
};

void NodeLink::Impl::lose(const std::string& why) {
  if (lost) return;
  lost = true;
  channel.close();
  tell_event(events.lost, why);
}

std::string NodeLink::Impl::why_it_closed() const {
  if (!leaving.empty()) return leaving;
  if (said_bye) return "it ended with the job";
  if (channel.reader().begun()) return "the connection to it closed";
  const std::string noise = channel.reader().noise();
  if (noise.empty()) return "it ended before it had said anything";
  return fmt::format("no mlenv agent was started there: it wrote `{}`", noise);
}

void NodeLink::Impl::take() {
  if (lost) return;
  const bool open = channel.take();
  hear();
  if (!open) lose(why_it_closed());
}

void NodeLink::Impl::hear() {
  try {
    while (!lost) {
      std::optional<Message> message = channel.next();
      if (!message) return;
      // Before the first word nobody may be there who understands a beat.
      if (beater != nullptr && !std::exchange(has_beats, true)) beater->add(channel);
      on(*std::move(message));
    }
  } catch (const Error& error) {
    if (error.code() != "bad-stream" && error.code() != "node-version") throw;
    lose(error.what());
  }
}

void NodeLink::Impl::send() {
  if (lost || !channel.reader().begun()) return;
  fill();
  if (!channel.send()) {
    take();  // its last words
    return lose(why_it_closed());
  }
  fill();
}

void NodeLink::Impl::fill() {
  const auto failed = [this](const std::string& during, const Error& error) {
    tell_event(events.failed, during, error);
  };
  // Never in the midst of a blob.
  if (!blobs.busy()) return data.fill(channel, failed);
  const std::uint64_t before = blobs.sent();
  blobs.fill(channel, failed);
  if (blobs.sent() != before) tell_event(events.sending, blobs.sent(), blobs.all());
}

void NodeLink::Impl::tick() {
  if (lost) return;
  const auto now = Channel::Clock::now();
  // Until its first word the owner is patient, who knows what brings the agent there.
  if (!channel.reader().begun()) return;
  if (now - channel.last_said() >= settings.beat) say(Beat{});
  send();
  const milliseconds most = settings.silence;
  if (lost || now - channel.last_heard() < most) return;
  take();  // this process may be the one that slept
  if (lost || Channel::Clock::now() - channel.last_heard() < most) return;
  lose(fmt::format("nothing was heard of it for {:.0f} s", seconds(most)));
}

/// Nothing is said before the node has said who it is, nor that twice; and what is for nodes is not
/// said by one.
void NodeLink::Impl::require_in_turn(const Message& message) {
  const bool is_hello = std::holds_alternative<Hello>(message);
  const bool is_any_time = std::holds_alternative<Beat>(message) ||
                           std::holds_alternative<Leaving>(message) ||
                           std::holds_alternative<Failed>(message);
  if (is_hello ? met : !met && !is_any_time) throw misunderstood("a message came out of its turn");
  if (is_hello) met = true;
  if (is_for_nodes(message)) throw misunderstood("it speaks as if it were the job's controller");
}

void NodeLink::Impl::on(Message&& message) {
  require_in_turn(message);
  if (auto* line = std::get_if<RankLine>(&message))
    return tell_event(events.line, line->rank, line->line);
  if (auto* hello = std::get_if<Hello>(&message)) {
    return tell_event(events.met, shown_safely(hello->hello));
  }
  if (auto* want = std::get_if<Want>(&message)) return on_want(*want);
  if (auto* ready = std::get_if<Ready>(&message)) return on_ready(*ready);
  if (auto* failed = std::get_if<Failed>(&message)) return on_failed(*failed);
  if (auto* ports = std::get_if<FreePorts>(&message)) return tell_event(events.ports, ports->ports);
  if (auto* facts = std::get_if<FactsText>(&message)) return on_facts(*facts);
  if (auto* started = std::get_if<RankStarted>(&message)) {
    return tell_event(events.started, started->rank, started->run);
  }
  if (auto* used = std::get_if<RankUsed>(&message)) {
    used->use.waits_for = shown_text(used->use.waits_for);
    used->use.waits_at = shown_text(used->use.waits_at);
    return tell_event(events.use, used->rank, used->use);
  }
  if (auto* ended = std::get_if<RankEnded>(&message)) {
    const std::uint64_t rank = ended->rank;
    return tell_event(events.ended, rank, shown_end(std::move(*ended)));
  }
  if (auto* tested = std::get_if<LinkTested>(&message)) {
    return tell_event(events.link_tested, tested->answer);
  }
  if (auto* tested = std::get_if<StorageTested>(&message)) {
    return tell_event(events.storage_tested, tested->answer);
  }
  if (auto* words = std::get_if<Leaving>(&message)) leaving = shown_text(words->why);
  if (!on_data(message)) on_piece(message);
}

void NodeLink::Impl::on_piece(const Message& message) {
  if (const auto* serving = std::get_if<Serving>(&message)) {
    tell_event(events.serving, serving->port);
  } else if (const auto* arrived = std::get_if<PieceArrived>(&message)) {
    tell_event(events.arrived, *arrived);
  } else if (const auto* piece = std::get_if<PieceFailed>(&message)) {
    tell_event(events.not_fetched, *piece);
  } else if (const auto* blob = std::get_if<BlobSpoilt>(&message)) {
    tell_event(events.spoilt, *blob);
  } else if (const auto* range = std::get_if<RangeEnded>(&message)) {
    RangeEnded ended = *range;
    ended.why = shown_text(ended.why);
    tell_event(events.range_ended, ended);
  }
}

bool NodeLink::Impl::on_data(const Message& message) {
  if (const auto* at = std::get_if<DataAt>(&message)) {
    tell_event(events.data_at, at->place);
  } else if (const auto* want = std::get_if<WantData>(&message)) {
    data.want(*want);
  } else {
    return false;
  }
  return true;
}

/// What was not offered is not sent, whatever the node asks for.
void NodeLink::Impl::on_want(const Want& want) {
  const Offer& offer = want.during == kImageOffer ? image : want.during == kLists ? lists : code;
  Want offered{want.during, {}, want.kept};
  for (const OfferedBlob& blob : offer.blobs) {
    const bool wanted = std::any_of(want.blobs.begin(), want.blobs.end(),
                                    [&](const auto& one) { return one.digest == blob.digest; });
    if (wanted) offered.blobs.push_back(blob);
  }
  if (want.during == kImageOffer && events.lacking) return events.lacking(offered);
  if (offered.blobs.empty()) return;
  blobs.add(*offer.store, offered);
  tell_event(events.sending, blobs.sent(), blobs.all());
}

void NodeLink::Impl::on_ready(const Ready& ready) {
  tell_event(ready.during == kImageOffer ? events.image_ready : events.code_ready, ready.digest);
}

void NodeLink::Impl::on_facts(const FactsText& text) {
  std::optional<Facts> facts;
  try {
    constexpr const char* kWhat = "what the node says of itself";
    nlohmann::json value = parse_json(text.facts, kWhat);
    make_shown(value);
    facts = read_facts(value.dump(), kWhat);
  } catch (const Error& error) {
    return tell_event(events.failed, "facts", shown_safely(Failed::of("facts", error)).error());
  }
  tell_event(events.facts, *facts);
}

void NodeLink::Impl::on_failed(const Failed& failed) {
  blobs.forget(failed.during);
  if (failed.during == kData) data.forget();
  tell_event(events.failed, failed.during, shown_safely(failed).error());
}

void NodeLink::Impl::offer(Store& store, std::string_view during, const Message& message) {
  if (const auto* whole = std::get_if<OfferImage>(&message)) {
    image = {&store, whole->layers};
  } else if (const auto* archive = std::get_if<OfferCode>(&message)) {
    code = {&store, {archive->archive}};
  }
  blobs.forget(std::string(during));
  say(message);
}

NodeLink::NodeLink(NodeStream stream, const LinkSettings& settings, NodeEvents events,
                   Beater* beater)
    : impl_(std::make_unique<Impl>(std::move(stream), settings, std::move(events), beater)) {}
NodeLink::~NodeLink() = default;

int NodeLink::read_fd() const { return impl_->channel.read_fd(); }
int NodeLink::write_fd() const { return impl_->channel.write_fd(); }
bool NodeLink::wants_to_write() const {
  const Impl& impl = *impl_;
  return !impl.lost && impl.channel.reader().begun() &&
         (impl.channel.queued() > 0 || impl.blobs.busy() || impl.data.busy());
}
void NodeLink::take() { impl_->take(); }
void NodeLink::send() { impl_->send(); }
void NodeLink::tick() { impl_->tick(); }

void NodeLink::meet(const std::string& job_id, std::size_t ports) {
  impl_->say(Meet{kProtocol, job_id, ports, milliseconds_count(impl_->settings.beat),
                  milliseconds_count(impl_->settings.silence)});
}
void NodeLink::ask_facts() { impl_->say(AskFacts{}); }
void NodeLink::ask_ports(std::size_t count) { impl_->say(AskPorts{count}); }

void NodeLink::send_image(Store& store, const std::string& digest,
                          const std::vector<std::string>& names) {
  const Image image = store.image(Digest::parse(digest));
  OfferImage offer{digest, image.manifest, image.config, {}, names};
  for (const Layer& layer : image.layers) {
    OfferedBlob blob{layer.blob.digest.str(), layer.blob.size_bytes};
    const bool known = std::any_of(offer.layers.begin(), offer.layers.end(),
                                   [&](const auto& one) { return one.digest == blob.digest; });
    if (!known) offer.layers.push_back(std::move(blob));
  }
  impl_->offer(store, kImageOffer, offer);
}

void NodeLink::serve_peers(const std::string& token, const std::string& address) {
  impl_->say(ServePeers{token, address});
}
void NodeLink::fetch(const FetchPiece& piece) { impl_->say(piece); }
void NodeLink::use_registry(const UseRegistry& registry) { impl_->say(registry); }
void NodeLink::fetch(const FetchRange& range) { impl_->say(range); }
void NodeLink::send_piece(Store& store, const OfferedBlob& blob, std::size_t piece) {
  impl_->blobs.add_piece(store, std::string(kImageOffer), blob, piece);
}
std::size_t NodeLink::pieces_waiting() const { return impl_->blobs.waiting(); }

void NodeLink::send_code(Store& store, const std::string& digest) {
  const std::optional<std::uint64_t> size = store.size_of(Digest::parse(digest));
  if (!size) {
    throw failure("absent", "the store has no archive `{}` of the job's code", digest);
  }
  impl_->offer(store, kDuringCode, OfferCode{{digest, *size}});
}

void NodeLink::send_data(Store& store, DataLists& lists, const std::vector<DataSet>& sets) {
  impl_->lists = {&store, {}};
  for (const DataSet& set : sets) {
    if (!set.list.empty()) impl_->lists.blobs.push_back({set.list, set.list_bytes});
  }
  impl_->data.offer(lists, sets);
  impl_->say(OfferData{sets});
}
std::optional<NodeLink::DataSent> NodeLink::data_sent() const {
  if (!impl_->data.busy()) return std::nullopt;
  return DataSent{impl_->data.name(), impl_->data.sent(), impl_->data.all()};
}

void NodeLink::start(const RankStart& rank) {
  impl_->say(StartRank{rank.rank, render_run_start(rank.record), render_request(rank.run),
                       rank.code_as_project, rank.most_log_bytes, rank.gpus, rank.hosts,
                       rank.mpi_hosts});
}
void NodeLink::link_test(const std::string& request) { impl_->say(LinkTest{request}); }
void NodeLink::test_storage(const std::string& request) { impl_->say(TestStorage{request}); }
void NodeLink::signal(std::uint64_t rank, int number) {
  impl_->say(SignalRank{rank, static_cast<std::uint64_t>(number)});
}
void NodeLink::stop(std::uint64_t rank, std::chrono::milliseconds grace) {
  impl_->say(StopRank{rank, milliseconds_count(grace)});
}
void NodeLink::bye() {
  impl_->say(Bye{});
  impl_->said_bye = true;
}

}  // namespace mlenv::job
