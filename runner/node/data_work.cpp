#include "runner/node/data_work.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>

#include "base/error.hpp"
#include "base/pool.hpp"
#include "base/progress.hpp"
#include "images/store.hpp"
#include "recipes/data_digest.hpp"
#include "recipes/known_data.hpp"
#include "runner/local/run_names.hpp"

namespace mlenv::job {
namespace {

/// More are asked for with what lies between them.
constexpr std::size_t kMostRanges = 1000;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

/// -1: there is no such file.
std::int64_t size_there(const fs::path& path) {
  struct stat status {};
  const bool is_file = ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? static_cast<std::int64_t>(status.st_size) : -1;
}

fs::path below(const fs::path& folder, const DataFile& file) {
  return file.path.empty() ? folder : folder / file.path;
}

void rename_to(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  throw os_error(errno, "cannot rename `{}`", from.string());
}

/// Takes away what came in part and nobody went on with for a week.
void sweep_parts(const fs::path& store) {
  constexpr std::chrono::hours kWeek{24 * 7};
  const fs::path folder = store / "data";
  std::error_code error;
  if (!fs::is_directory(folder, error)) return;
  for (const fs::path& entry : list_folder(folder)) {
    if (entry.extension() != ".part") continue;
    const fs::file_time_type last = fs::last_write_time(entry, error);
    if (error || fs::file_time_type::clock::now() - last < kWeek) continue;
    const auto lock =
        FileLock::attempt(fs::path(entry).replace_extension(".lock"), FileLock::Mode::exclusive);
    if (lock) remove_tree(entry);
  }
}

// --- look ------------------------------------------------------------------------------------

/// What an earlier job kept. Where it is no longer what it was, what is left of it is a part again.
bool has_kept(Store& store, const DataNames& names, const Digest& digest) {
  if (!is_there(names.whole())) return false;
  QuietProgress progress;
  try {
    if (known_data_digest(store, names.whole(), progress) == digest) return true;
  } catch (const Error& error) {
    if (error.code() != "bad-data") throw;
  }
  remove_tree(names.part());
  make_folders(names.part());
  rename_to(names.whole(), names.content());
  return false;
}

Error no_data(const std::string& name, const fs::path& from, bool can_be_sent) {
  Error error = failure("no-data", "the data `{}` is not at `{}` on node `{}`", name, from.string(),
                        host_name());
  if (can_be_sent) return error;
  return error.hint(
      "put it on storage that all nodes share, or let nodes be sent it: `stage: node` in the "
      "recipe, where this machine has it");
}

std::string render_at(const char* how, const fs::path& path) {
  DataAt at;
  at.place.how = how;
  at.place.path = path.string();
  at.place.bytes = data_size(path);
  return render_message(at);
}

std::string look(Store& store, const std::vector<std::string>& words) {
  const std::string& name = words.at(3);
  const Digest digest = Digest::parse(words.at(4));
  const fs::path from = words.at(5);
  const bool can_be_sent = words.at(6) == "yes";
  sweep_parts(store.root());
  const DataNames names{store.root(), digest};
  if (has_kept(store, names, digest)) return render_at("kept", names.whole());
  std::error_code error;
  if (!fs::exists(from, error)) {
    if (!can_be_sent) throw no_data(name, from, can_be_sent);
    return render_message(WantData{digest.str(), {}, 0});
  }
  QuietProgress progress;
  const fs::path real = fs::canonical(from);
  const Digest found = known_data_digest(store, real, progress);
  if (found == digest) return render_at("found", real);
  if (can_be_sent) return render_message(WantData{digest.str(), {}, 0});
  throw refusal("data-differs", "`{}` is not the data that the recipe declares as `{}`",
                from.string(), name)
      .because(fmt::format("declared {}, found {}", digest.str(), found.str()))
      .hint("bring the declared data there, or let nodes be sent it: `stage: node` in the recipe");
}

// --- plan ------------------------------------------------------------------------------------

DataList list_of(const Store& store, const Digest& digest, const std::string& blob) {
  DataList list = read_data_list(store, Digest::parse(blob));
  const Digest found = list.digest();
  if (found == digest) return list;
  throw failure("digest-mismatch", "the list of files is not that of the declared data")
      .because(fmt::format("declared {}, and it is of {}", digest.str(), found.str()));
}

void require_room(const fs::path& folder, std::uint64_t bytes) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return;
  const std::uint64_t free = std::uint64_t{status.f_bavail} * status.f_frsize;
  if (free >= bytes) return;
  throw failure("no-space", "no room for the data in `{}`", folder.string())
      .because(fmt::format("{} bytes of it are to come, and {} are free", bytes, free))
      .hint("make room there, or set MLENV_STORE to a folder on a larger disk");
}

WantData lacking(const DataNames& names, const Digest& digest, const DataList& list) {
  WantData want{digest.str(), {}, 0};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < list.files.size(); ++i) {
    const DataFile& file = list.files[i];
    const auto size = static_cast<std::int64_t>(file.size_bytes);
    if (size_there(below(names.content(), file)) == size) continue;
    bytes += file.size_bytes;
    std::vector<DataRange>& ranges = want.ranges;
    if (ranges.empty()) {
      const std::int64_t there = size_there(names.piece(file.digest));
      want.offset = there > 0 && there < size ? static_cast<std::uint64_t>(there) : 0;
    }
    const bool goes_on = !ranges.empty() && ranges.back().first + ranges.back().count == i;
    if (goes_on || ranges.size() >= kMostRanges) {
      ranges.back().count = i + 1 - ranges.back().first;
    } else {
      ranges.push_back({i, 1});
    }
  }
  require_room(names.folder(), bytes - want.offset);
  return want;
}

// --- finish ----------------------------------------------------------------------------------

std::string finish(Store& store, const DataNames& names, const Digest& digest,
                   const DataList& list) {
  Pool pool;
  QuietProgress progress;
  // A data set may have no file at all.
  if (!is_there(names.content())) make_folders(names.content());
  const DataList found = data_list(names.content(), pool, progress);
  if (found.digest() != digest) {
    std::set<std::pair<std::string_view, std::string_view>> right;
    for (const DataFile& file : list.files) right.emplace(file.path, file.digest.hex());
    for (const DataFile& file : found.files) {
      if (!right.contains({file.path, file.digest.hex()})) {
        remove_tree(below(names.content(), file));
      }
    }
    return render_message(lacking(names, digest, list));
  }
  const Fd folder = open_file(names.folder(), O_RDONLY | O_DIRECTORY);
  if (::syncfs(folder.get()) != 0) throw os_error(errno, "cannot write the data to the disk");
  rename_to(names.content(), names.whole());
  (void)::fsync(folder.get());
  remove_tree(names.part());
  remember_data(store, names.whole(), digest);
  return render_at("staged", names.whole());
}

}  // namespace

std::string data_work(const std::vector<std::string>& words) {
  Store store{words.at(1)};
  const std::string& what = words.at(2);
  if (what == "look") return look(store, words);
  const Digest digest = Digest::parse(words.at(3));
  const DataNames names{store.root(), digest};
  const DataList list = list_of(store, digest, words.at(4));
  make_folders(names.part());
  if (what == "finish") return finish(store, names, digest, list);
  return render_message(lacking(names, digest, list));
}

}  // namespace mlenv::job
