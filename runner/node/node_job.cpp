#include "runner/node/node_job.hpp"

#include <sys/inotify.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runner/local/rdma.hpp"
#include "runner/local/run_names.hpp"
#include "runner/local/stage.hpp"
#include "runner/node/hello.hpp"
#include "runner/node/hosts.hpp"
#include "runner/node/mpi_folder.hpp"
#include "runner/node/node_gpus.hpp"
#include "runner/node/version.hpp"

namespace mlenv::job {
namespace {

constexpr const char* kImageWork = "image";
constexpr const char* kCodeIntake = "code";
constexpr const char* kFacts = "facts";
constexpr const char* kDataSets = "data";
constexpr const char* kDataLists = "list";
constexpr std::uint64_t kUsualLog = std::uint64_t{256} << 20;

/// All that was written meanwhile is read at once, whoever it was.
void clear(const Fd& events) {
  std::array<char, 4096> buffer{};
  while (::read(events.get(), buffer.data(), buffer.size()) > 0) {
  }
}

/// Else the OCI runtime tells it, in words of its own.
void check_job_sources(const LocalRun& run) {
  for (const Mount& mount : run.mounts) {
    std::error_code error;
    if (fs::exists(mount.source, error)) continue;
    throw usage_error("bad-mount", "`{}` is not there on node `{}`", mount.source.string(),
                      host_name())
        .because("make it on each node, or mount what all of them share");
  }
}

}  // namespace

NodeJob::NodeJob(Channel& channel, Store& store)
    : channel_(channel),
      store_(store),
      intake_(store),
      layers_(channel, store),
      data_(channel, store, owner_of_data()),
      // Not every file system tells: the look now and then does the rest.
      logs_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

template <class DoIt>
void NodeJob::attempt(const std::string& during, DoIt&& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == "bad-stream") throw;
    give_up(during);
    channel_.say(Failed::of(during, error));
  }
}

void NodeJob::give_up(const std::string& during) {
  if (during == kImageWork) return layers_.forget();
  if (during == kDataSets || during == kDataLists) data_.forget();
  intake_.forget(during);
}

void NodeJob::take_bytes(std::string_view bytes) {
  if (bytes_of_ == kImageWork) return layers_.take(bytes);
  if (bytes_of_ == kDataSets) return attempt(kDataSets, [&] { data_.take(bytes); });
  const std::string during = intake_.under_way();
  attempt(during, [&] { begin_when_complete(intake_.take(bytes)); });
}

void NodeJob::on_begin(const BeginBlob& begin) {
  bytes_of_ = begin.during;
  if (bytes_of_ == kImageWork) return layers_.begin(begin);
  if (bytes_of_ == kDataSets) return attempt(kDataSets, [&] { data_.begin(begin); });
  attempt(begin.during, [&] { begin_when_complete(intake_.begin(begin)); });
}

void NodeJob::take(const Message& message) {
  if (const auto* bytes = std::get_if<BlobBytes>(&message)) return take_bytes(bytes->bytes);
  if (ending_) return;
  if (const auto* begin = std::get_if<BeginBlob>(&message)) return on_begin(*begin);
  if (const auto* offer = std::get_if<OfferData>(&message)) {
    return attempt(kDataSets, [&] { data_.offer(*offer); });
  }
  if (const auto* offer = std::get_if<OfferImage>(&message)) {
    return attempt(kImageWork, [&] { on_offer(*offer); });
  }
  if (const auto* offer = std::get_if<OfferCode>(&message)) {
    return attempt(kCodeIntake, [&] { on_offer(*offer); });
  }
  if (const auto* test = std::get_if<LinkTest>(&message)) return on_link_test(*test);
  if (const auto* test = std::get_if<TestStorage>(&message)) return on_storage_test(*test);
  if (const auto* up = std::get_if<GiveUp>(&message)) return give_up(up->during);
  if (const auto* piece = std::get_if<FetchPiece>(&message)) return layers_.fetch(*piece);
  if (const auto* peers = std::get_if<ServePeers>(&message)) return layers_.serve(*peers);
  if (const auto* use = std::get_if<UseRegistry>(&message)) return layers_.use_registry(*use);
  if (const auto* range = std::get_if<FetchRange>(&message)) return layers_.fetch(*range);
  if (const auto* start = std::get_if<StartRank>(&message)) return on_start(*start);
  if (const auto* ports = std::get_if<AskPorts>(&message)) {
    return channel_.say(FreePorts{free_ports(ports->count)});
  }
  if (std::holds_alternative<AskFacts>(message)) {
    return attempt(kFacts, [&] {
      works_.push_back(std::make_unique<Work>(
          kFacts,
          std::vector<std::string>{kFacts, store_.root().string(), temporary_root().string()},
          job_folder()));
    });
  }
  if (const auto* signal = std::get_if<SignalRank>(&message)) {
    if (RankRun* one = rank(signal->rank)) one->signal(static_cast<int>(signal->signal));
  } else if (const auto* stop = std::get_if<StopRank>(&message)) {
    if (RankRun* one = rank(stop->rank)) one->stop(std::chrono::milliseconds(stop->grace_ms));
  }
}

// --- images and code -------------------------------------------------------------------------

void NodeJob::on_offer(const OfferImage& offer) {
  image_.reset();
  const std::string found = Digest::of(offer.manifest).str();
  if (found != offer.digest) {
    throw failure("digest-mismatch", "the manifest of `{}` is not what was promised", offer.digest)
        .because(fmt::format("found {}", found));
  }
  image_ = parse_image(offer.manifest, offer.config);
  names_ = offer.names;
  std::vector<OfferedBlob> layers;
  for (const Layer& layer : image_->layers) {
    layers.push_back({layer.blob.digest.str(), layer.blob.size_bytes});
  }
  layers_.offer(layers);
}

void NodeJob::on_offer(const OfferCode& offer) {
  archive_ = Digest::parse(offer.archive.digest).str();
  const std::vector<OfferedBlob> lacking = intake_.lacking(kCodeIntake, {offer.archive});
  channel_.say(Want{kCodeIntake, lacking});
  if (lacking.empty()) begin_when_complete(kCodeIntake);
}

fs::path NodeJob::job_folder() {
  if (!folder_) folder_.emplace(store_.scratch());
  return folder_->path();
}

fs::path NodeJob::code_folder() { return job_folder() / Digest::parse(archive_).hex(); }

void NodeJob::begin_when_complete(const std::string& during) {
  const std::string store = store_.root().string();
  if (during == kImageWork && image_) {
    // Not yet for good: work_main does that, which waits for the disk.
    (void)store_.put(image_->config);
    (void)store_.put(image_->manifest);
    std::vector<std::string> words{kImageWork, store, image_->digest().str()};
    words.insert(words.end(), names_.begin(), names_.end());
    works_.push_back(std::make_unique<Work>(kImageWork, std::move(words)));
  } else if (during == kCodeIntake) {
    if (code_ == archive_) return ready(kCodeIntake, code_);
    works_.push_back(std::make_unique<Work>(
        kCodeIntake,
        std::vector<std::string>{kCodeIntake, store, archive_, code_folder().string()}));
  } else if (during == kDataLists) {
    attempt(kDataSets, [&] { data_.list_is_there(); });
  }
}

DataIntake::Owner NodeJob::owner_of_data() {
  DataIntake::Owner owner;
  owner.work = [this](const std::vector<std::string>& words) {
    works_.push_back(std::make_unique<Work>(kDataSets, words));
  };
  owner.fetch_list = [this](const OfferedBlob& list) {
    const std::vector<OfferedBlob> lacking = intake_.lacking(kDataLists, {list});
    if (lacking.empty()) return data_.list_is_there();
    channel_.say(Want{kDataLists, lacking});
  };
  return owner;
}

void NodeJob::take_answer(Work& work) {
  attempt(work.during(), [&] {
    const bool before = std::exchange(unfinished_, true);
    const std::string answer = work.answer();
    unfinished_ = before;
    if (work.during() == kFacts) {
      facts_ = answer;
      return channel_.say(FactsText{answer});
    }
    if (work.during() == kDataSets) return data_.answered(answer);
    ready(work.during(), answer);
  });
}

void NodeJob::ready(const std::string& during, const std::string& digest) {
  if (during == kCodeIntake) {
    code_ = digest;
  } else {
    std::vector<fs::path> trees;
    for (const Layer& layer : store_.image(Digest::parse(digest)).layers) {
      const std::optional<fs::path> tree = store_.find_tree(layer.diff_id);
      if (!tree) throw failure("absent", "the layer `{}` is gone", layer.diff_id.str());
      trees.push_back(*tree);
    }
    trees_[digest] = std::move(trees);
  }
  channel_.say(Ready{during, digest});
}

// --- ranks -----------------------------------------------------------------------------------

RankRun* NodeJob::rank(std::uint64_t number) {
  const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                  [&](const auto& one) { return one->rank() == number; });
  return found == ranks_.end() ? nullptr : found->get();
}

DetachedRun NodeJob::run_of(const StartRank& start) {
  DetachedRun made;
  made.run = parse_request(start.run);
  made.start = parse_run_start(start.record, "what a rank is to run");
  made.start.mlenv = std::string(own_version());
  made.store = store_.root();
  made.host = facts_;
  made.most_log_bytes = start.most_log_bytes > 0 ? start.most_log_bytes : kUsualLog;
  const auto trees = trees_.find(made.start.image.digest);
  if (trees == trees_.end()) {
    throw failure("absent", "the node was not given the image `{}`", made.start.image.digest);
  }
  made.run.trees = trees->second;
  check_job_sources(made.run);
  data_.add_to(made);
  sources_.find(made.run);  // at the first attempt; its ranks may put links there for the next
  sources_.apply(made.run);
  NodeGpus gpus = node_gpus(start.gpus);
  made.run.devices = std::move(gpus.edits);
  for (const CdiName& one : gpus.names) {
    made.start.devices.push_back(one.kind + "=" + one.device);
  }
  if (made.run.options.rdma) {
    add_rdma(made.run.options, made.run.devices);
    made.start.options = made.run.options;
  }
  if (!start.hosts.empty()) {
    made.run.mounts.insert(made.run.mounts.begin(),
                           Mount{hosts_file(start.hosts), "/etc/hosts", true});
  }
  if (!start.mpi_hosts.empty()) add_mpi_folder(made.run, job_folder() / "mpi", start.mpi_hosts);
  if (start.code_as_project) {
    if (code_.empty()) throw failure("absent", "the node was not given the job's code");
    made.run.project = code_folder();
  }
  return made;
}

/// The job's nodes by name before what this one knows: a rank that looks its own host up must find
/// the address by which others reach it, and not a loopback (Debian's 127.0.1.1).
fs::path NodeJob::hosts_file(const std::string& hosts) {
  fs::path path = job_folder() / "hosts";
  write_file(path, hosts_with_own(hosts, read_file_if_exists("/etc/hosts").value_or("")),
             /*durable=*/false);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read |
                            fs::perms::others_read);
  return path;
}

void NodeJob::on_start(const StartRank& start) {
  try {
    if (rank(start.rank) != nullptr) {
      throw failure("bad-stream", "rank {} runs on this node already", start.rank);
    }
    ranks_.push_back(std::make_unique<RankRun>(start.rank, run_of(start)));
    if (image_) store_.need_only({image_->digest()});  // it may go on for weeks
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    channel_.say(RankEnded{start.rank, kOwnFailureStatus, std::nullopt, false,
                           RunFailure{known ? known->code() : "internal", error.what()}, ""});
  }
}

// --- preflight -------------------------------------------------------------------------------

void NodeJob::on_link_test(const LinkTest& test) {
  if (test.request.empty()) return links_.reset();
  try {
    if (!links_) links_.emplace();
    links_->ask(test.request);
  } catch (const Error&) {
    channel_.say(LinkTested{});
  }
}

// --- storage ---------------------------------------------------------------------------------

void NodeJob::on_storage_test(const TestStorage& test) {
  if (test.request.empty()) return storage_.reset();
  try {
    if (!storage_ || storage_->fd() < 0) storage_.emplace();
    storage_->ask(test.request);
  } catch (const Error&) {
    channel_.say(StorageTested{});
  }
}

// --- the owner's loop ------------------------------------------------------------------------

void NodeJob::add_to(std::vector<pollfd>& fds) const {
  // While the controller does not read, logs wait.
  fds.push_back({channel_.has_room() && logs_ ? logs_.get() : -1, POLLIN, 0});
  fds.push_back({links_ ? links_->fd() : -1, POLLIN, 0});
  fds.push_back({storage_ ? storage_->fd() : -1, POLLIN, 0});
  for (const auto& one : ranks_) fds.push_back({one->fd(), POLLIN, 0});
  for (const auto& one : works_) fds.push_back({one->fd(), POLLIN, 0});
  layers_.add_to(fds);
}

void NodeJob::hear(const pollfd* fds) {
  if ((fds++)->revents != 0) clear(logs_);
  if ((fds++)->revents != 0) {
    for (const std::string& answer : links_->hear()) channel_.say(LinkTested{answer});
  }
  if ((fds++)->revents != 0) {
    for (const std::string& answer : storage_->hear()) channel_.say(StorageTested{answer});
  }
  for (const auto& one : ranks_) {
    if ((fds++)->revents == 0) continue;
    const bool had_log = !one->log().empty();
    one->hear();
    if (!had_log && !one->log().empty() && logs_) {
      (void)::inotify_add_watch(logs_.get(), one->log().c_str(), IN_MODIFY | IN_CREATE);
    }
  }
  std::vector<std::unique_ptr<Work>> going_on;
  std::vector<std::unique_ptr<Work>> over;
  for (auto& one : works_) {
    const bool ended = (fds++)->revents != 0 && !one->hear();
    (ended ? over : going_on).push_back(std::move(one));
  }
  works_ = std::move(going_on);
  (void)layers_.hear(fds);
  for (const auto& one : over) take_answer(*one);
}

void NodeJob::tell() {
  for (const auto& one : ranks_) one->tell(channel_);
  std::erase_if(ranks_, [](const auto& one) { return one->done(); });
}

void NodeJob::tick() {
  layers_.tick();
  attempt(kImageWork, [&] {
    if (!ending_ && layers_.advance()) begin_when_complete(kImageWork);
  });
  attempt(kDataSets, [&] {
    if (!ending_) data_.tick();
  });
  for (const auto& one : ranks_) one->tick();
}

void NodeJob::end(std::chrono::milliseconds grace, const std::string& why) {
  ending_ = true;
  unfinished_ = unfinished_ || !works_.empty();
  works_.clear();  // their processes are killed
  if (unfinished_) sweep();
  layers_.forget();
  data_.forget();
  links_.reset();
  storage_.reset();
  for (const auto& one : ranks_) {
    if (!why.empty()) one->blame(why);
    one->stop(grace);
  }
}

/// What processes that were killed had begun in the store.
void NodeJob::sweep() {
  try {
    const Store store{store_.root()};
  } catch (const Error& error) {
    log::debug("unfinished work stays in `{}`: {}", store_.root().string(), error.what());
  }
}

void NodeJob::kill_ranks() {
  for (const auto& one : ranks_) one->kill();
}

bool NodeJob::gone() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& one) { return one->over(); });
}

}  // namespace mlenv::job
