#include "runner/job/data_sender.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/files_beneath.hpp"
#include "runner/job/misunderstood.hpp"

namespace mlenv::job {
namespace {

constexpr std::uint64_t kPart = std::uint64_t{256} << 10U;

fs::path data_file_path(const DataSet& set, const DataFile& file) {
  return file.path.empty() ? fs::path(set.from) : fs::path(set.from) / file.path;
}

Error changed(const fs::path& path) {
  return failure("file-changed", "`{}` is not what it was when the job was made", path.string())
      .hint("again, when nothing writes it");
}

}  // namespace

void DataSender::offer(DataLists& lists, const std::vector<DataSet>& sets) {
  forget();
  lists_ = &lists;
  sets_ = sets;
}

void DataSender::forget() {
  set_ = nullptr;
  list_.reset();
}

void DataSender::want(const WantData& want) {
  const auto found = std::find_if(sets_.begin(), sets_.end(), [&](const DataSet& one) {
    return one.digest == want.digest && !one.list.empty();
  });
  if (found == sets_.end()) return;
  forget();
  set_ = &*found;
  ranges_ = want.ranges;
  offset_ = want.offset;
  file_.reset();
}

/// Files that are not in the list are not asked for by any node of ours.
void DataSender::read_list() {
  list_ = lists_->of(set_->list);
  std::uint64_t lacking = 0;
  for (const DataRange& range : ranges_) {
    if (range.first > list_->files.size() || range.count > list_->files.size() - range.first) {
      throw misunderstood(fmt::format("files {} to {} of {} are asked for", range.first,
                                      range.first + range.count, list_->files.size()));
    }
    for (std::uint64_t i = 0; i < range.count; ++i) {
      lacking += list_->files[range.first + i].size_bytes;
    }
  }
  const std::uint64_t all = list_->size_bytes();
  sent_ = all - std::min(all, lacking - std::min(lacking, offset_));
  std::erase_if(ranges_, [](const DataRange& one) { return one.count == 0; });
}

void DataSender::fill(Channel& channel, const FailedEvent& failed) {
  while (busy() && channel.has_room()) {
    try {
      send_part(channel);
    } catch (const Error& error) {
      forget();
      channel.say(GiveUp{std::string(kData)});
      failed(std::string(kData), error);
    }
  }
}

void DataSender::open_file(const DataFile& file) {
  const fs::path path = data_file_path(*set_, file);
  file_ = open_file_of_set(set_->from, file.path);
  struct stat status {};
  const bool same = ::fstat(file_.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                    static_cast<std::uint64_t>(status.st_size) == file.size_bytes &&
                    offset_ <= file.size_bytes;
  if (!same) throw changed(path);
}

void DataSender::send_part(Channel& channel) {
  if (!file_) read_list();
  if (ranges_.empty()) return forget();
  const DataFile& file = list_->files[ranges_.front().first];
  if (!file_) open_file(file);
  BlobBytes part;
  part.bytes.resize(static_cast<std::size_t>(std::min(kPart, file.size_bytes - offset_)));
  std::size_t done = 0;
  while (done < part.bytes.size()) {
    const ssize_t count = ::pread(file_.get(), part.bytes.data() + done, part.bytes.size() - done,
                                  static_cast<off_t>(offset_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw os_error(errno, "cannot read `{}`", data_file_path(*set_, file).string());
    if (count == 0) throw changed(data_file_path(*set_, file));
    done += static_cast<std::size_t>(count);
  }
  channel.say(BeginBlob{std::string(kData), {file.digest.str(), file.size_bytes}, offset_, done});
  if (done > 0) channel.say(part);
  offset_ += done;
  sent_ += done;
  if (offset_ == file.size_bytes) next_file();
}

void DataSender::next_file() {
  offset_ = 0;
  DataRange& range = ranges_.front();
  ++range.first;
  if (--range.count == 0) ranges_.erase(ranges_.begin());
  if (ranges_.empty()) return forget();
  open_file(list_->files[ranges_.front().first]);
}

}  // namespace mlenv::job
