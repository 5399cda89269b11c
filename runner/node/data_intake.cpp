#include "runner/node/data_intake.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "recipes/known_data.hpp"
#include "runner/job/misunderstood.hpp"

namespace mlenv::job {
namespace {

/// What came wrong is asked for again, once.
constexpr int kMostRounds = 2;

}  // namespace

DataIntake::DataIntake(Channel& channel, Store& store, Owner owner)
    : channel_(channel), store_(store), owner_(std::move(owner)) {}

DataNames DataIntake::names() const { return {store_.root(), Digest::parse(set().digest)}; }

void DataIntake::offer(const OfferData& offer) {
  forget();
  sets_ = offer.sets;
  places_.clear();
  at_ = 0;
  if (sets_.empty()) return;
  make_data_folder(store_.root());
  next_set();
}

void DataIntake::next_set() {
  began_ = Clock::now();
  sent_ = 0;
  rounds_ = 0;
  step_ = Step::locking;
  tick();
}

void DataIntake::tick() {
  if (step_ != Step::locking) return;
  lock_ = FileLock::attempt(names().lock(), FileLock::Mode::exclusive);
  if (!lock_) return;
  step_ = Step::looking;
  const bool can_be_sent = set().stage && !set().list.empty();
  owner_.work({std::string("data"), store_.root().string(), "look", set().name, set().digest,
               set().from, can_be_sent ? "yes" : "no"});
}

void DataIntake::start_work(const char* what) {
  step_ = Step::finishing;
  owner_.work({std::string("data"), store_.root().string(), what, set().digest, set().list});
}

void DataIntake::answered(const std::string& answer) {
  MessageReader reader{/*after_marker=*/false};
  reader.take(answer);
  const std::optional<Message> message = reader.next();
  if (!message) throw misunderstood("a process of the node did not answer");
  if (const auto* at = std::get_if<DataAt>(&*message)) return done(at->place);
  const auto* want = std::get_if<WantData>(&*message);
  if (want == nullptr) throw misunderstood("a process of the node answered something else");
  if (step_ != Step::looking) return take_in(*want);
  step_ = Step::listing;
  owner_.fetch_list({set().list, set().list_bytes});
}

void DataIntake::list_is_there() {
  if (step_ != Step::listing) return;
  list_ = read_data_list(store_, Digest::parse(set().list));
  start_work("plan");
}

/// What a plan, or a proof, found to be lacking.
void DataIntake::take_in(const WantData& want) {
  if (want.ranges.empty()) return start_work("finish");
  if (++rounds_ > kMostRounds) {
    const DataFile& wrong = list_.files.at(want.ranges.front().first);
    throw failure("digest-mismatch", "what came of the data `{}` is not what was promised",
                  set().name)
        .because(fmt::format("`{}` is not {}", (fs::path(set().from) / wrong.path).string(),
                             wrong.digest.str()))
        .hint("again, when nothing writes it");
  }
  ranges_ = want.ranges;
  offset_ = want.offset;
  step_ = Step::taking;
  next_file();
  channel_.say(want);
}

void DataIntake::next_file() {
  while (!ranges_.empty() && ranges_.front().count == 0) ranges_.erase(ranges_.begin());
  fd_.reset();
  file_ = ranges_.empty() ? nullptr : &list_.files.at(ranges_.front().first);
  if (file_ == nullptr) start_work("finish");
}

void DataIntake::begin(const BeginBlob& begin) {
  part_left_ = 0;
  if (step_ != Step::taking || file_ == nullptr) return;  // of a request that was given up
  const bool fits = begin.blob.digest == file_->digest.str() && begin.offset == offset_ &&
                    begin.blob.size_bytes == file_->size_bytes &&
                    begin.bytes <= file_->size_bytes - offset_;
  if (!fits) {
    throw misunderstood(fmt::format("{} bytes at {} come of `{}`, and `{}` was next at {}",
                                    begin.bytes, begin.offset, begin.blob.digest,
                                    file_->digest.str(), offset_));
  }
  if (!fd_) {
    fd_ = open_file(names().piece(file_->digest), O_WRONLY | O_CREAT | O_NOFOLLOW, 0644);
    // Beyond the offset somebody's earlier part may lie.
    if (::ftruncate(fd_.get(), static_cast<off_t>(offset_)) != 0 ||
        ::lseek(fd_.get(), static_cast<off_t>(offset_), SEEK_SET) < 0) {
      throw os_error(errno, "cannot write the data to the disk");
    }
    reserve_room(fd_.get(), file_->size_bytes);
  }
  part_left_ = begin.bytes;
  if (part_left_ == 0 && offset_ == file_->size_bytes) end_file();
}

void DataIntake::take(std::string_view bytes) {
  if (step_ != Step::taking || file_ == nullptr || !fd_ || part_left_ == 0) return;
  if (bytes.size() > part_left_) {
    throw misunderstood(fmt::format("more comes of `{}` than was said", file_->digest.str()));
  }
  write_all(fd_.get(), as_bytes(bytes));
  part_left_ -= bytes.size();
  offset_ += bytes.size();
  sent_ += bytes.size();
  if (offset_ == file_->size_bytes) end_file();
}

/// It has its place, proven or not: the whole is proven at the end.
void DataIntake::end_file() {
  constexpr mode_t kProgram = 0755;
  constexpr mode_t kPlain = 0644;
  const fs::path content = names().content();
  const fs::path to = file_->path.empty() ? content : content / file_->path;
  make_folders(to.parent_path());
  const fs::path from = names().piece(file_->digest);
  if (::fchmod(fd_.get(), file_->executable ? kProgram : kPlain) != 0 ||
      ::rename(from.c_str(), to.c_str()) != 0) {
    throw os_error(errno, "cannot make `{}`", to.string());
  }
  offset_ = 0;
  DataRange& range = ranges_.front();
  ++range.first;
  --range.count;
  next_file();
}

void DataIntake::done(DataPlace place) {
  place.name = set().name;
  place.digest = set().digest;
  place.sent = sent_;
  place.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  lock_.reset();
  step_ = Step::nothing;
  list_ = {};
  channel_.say(DataAt{place});
  places_.push_back(std::move(place));
  if (++at_ < sets_.size()) next_set();
}

void DataIntake::forget() {
  step_ = Step::nothing;
  file_ = nullptr;
  fd_.reset();
  part_left_ = 0;
  lock_.reset();
}

void DataIntake::add_to(DetachedRun& run) const {
  std::vector<Mount> mounts;
  std::vector<RecordedMount> recorded;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    mounts.push_back({places_[i].path, sets_[i].to, true});
    recorded.push_back({places_[i].path, sets_[i].to, true});
    // Where it was verified, without links; what is kept lies in the store, which may have them.
    if (places_[i].how == "found") run.run.settled.emplace_back(places_[i].path);
  }
  run.run.mounts.insert(run.run.mounts.begin(), mounts.begin(), mounts.end());
  run.start.mounts.insert(run.start.mounts.begin(), recorded.begin(), recorded.end());
}

}  // namespace mlenv::job
