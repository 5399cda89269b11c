#include "runner/node/data_work.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/pool.hpp"
#include "base/progress.hpp"
#include "base/tree_walk.hpp"
#include "images/store.hpp"
#include "recipes/data_digest.hpp"
#include "recipes/known_data.hpp"
#include "runner/local/run_names.hpp"

namespace mlenv::job {
namespace {

/// More are asked for with what lies between them.
constexpr std::size_t kMostRanges = 1000;

bool exists_unfollowed(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

/// -1: there is no such file.
std::int64_t size_there(const fs::path& path) {
  struct stat status {};
  const bool is_file = ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? static_cast<std::int64_t>(status.st_size) : -1;
}

fs::path path_in_copy(const fs::path& folder, const DataFile& file) {
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
    if (entry.extension() != ".part" || !is_digest_name(entry.stem().string())) continue;
    if (!own_status(entry)) continue;
    const fs::file_time_type last = fs::last_write_time(entry, error);
    if (error || fs::file_time_type::clock::now() - last < kWeek) continue;
    const auto lock =
        FileLock::attempt(fs::path(entry).replace_extension(".lock"), FileLock::Mode::exclusive);
    if (lock) remove_tree(entry);
  }
}

// --- look ------------------------------------------------------------------------------------

/// What an earlier job kept. Where it is no longer what it was, what is left of it is a part again;
/// of what holds something else than data nothing is.
bool has_kept(Store& store, const DataNames& names, const Digest& digest) {
  if (!exists_unfollowed(names.whole())) return false;
  QuietProgress progress;
  try {
    if (known_data_digest(store, names.whole(), progress) == digest) return true;
  } catch (const Error& error) {
    if (error.code() != "bad-data") throw;
    remove_tree(names.whole());
    return false;
  }
  remove_tree(names.part());
  make_folders(names.part());
  rename_to(names.whole(), names.content());
  return false;
}

/// `why` it cannot be reached.
Error no_data(const std::string& name, const fs::path& from, const std::string& why) {
  return failure("no-data", "the data `{}` is not at `{}` on node `{}`", name, from.string(),
                 host_name())
      .because(why)
      .hint(
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

/// Of what lies at `from`, which is to be the declared data.
std::string data_found_at(Store& store, const std::string& name, const Digest& digest,
                          const fs::path& from) {
  std::error_code error;
  const fs::path real = fs::canonical(from, error);
  if (error) throw no_data(name, from, error.message());
  QuietProgress progress;
  std::optional<Digest> found;
  try {
    found = known_data_digest(store, real, progress);
  } catch (const Error& unreadable) {
    if (unreadable.code() != "permission") throw;
    throw no_data(name, from, unreadable.what());
  }
  if (*found == digest) return render_at("found", real);
  throw refusal("data-differs", "`{}` is not the data that the recipe declares as `{}`",
                from.string(), name)
      .because(fmt::format("declared {}, found {}", digest.str(), found->str()))
      .hint("bring the declared data there, or let nodes be sent it: `stage: node` in the recipe");
}

std::string look_for_data(Store& store, const std::vector<std::string>& words) {
  const Digest digest = Digest::parse(words.at(4));
  const bool can_be_sent = words.at(6) == "yes";
  sweep_parts(store.root());
  const DataNames names{store.root(), digest};
  if (has_kept(store, names, digest)) return render_at("kept", names.whole());
  try {
    return data_found_at(store, words.at(3), digest, words.at(5));
  } catch (const std::exception&) {
    // Whatever is wrong with what lies there.
    if (!can_be_sent) throw;
    return render_message(WantData{digest.str(), {}, 0});
  }
}

// --- plan ------------------------------------------------------------------------------------

DataList declared_list(const Store& store, const Digest& digest, const std::string& blob) {
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

const DataFile* file_at(const DataList& list, std::string_view path) {
  const auto at =
      std::lower_bound(list.files.begin(), list.files.end(), path,
                       [](const DataFile& file, std::string_view one) { return file.path < one; });
  return at != list.files.end() && at->path == path ? &*at : nullptr;
}

bool has_below(const DataList& list, std::string_view folder) {
  const std::string prefix = std::string(folder) + "/";
  const auto at =
      std::lower_bound(list.files.begin(), list.files.end(), prefix,
                       [](const DataFile& file, std::string_view one) { return file.path < one; });
  return at != list.files.end() && at->path.starts_with(prefix);
}

/// Takes away all that the list does not have there, links first of all: nobody follows any.
void keep_listed(const fs::path& content, const DataList& list) {
  const fs::file_type type = fs::symlink_status(content).type();
  const bool is_file = file_at(list, "") != nullptr;
  if (type != (is_file ? fs::file_type::regular : fs::file_type::directory)) remove_tree(content);
  if (is_file || type != fs::file_type::directory) return;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const mode_t mode = entry.status.st_mode;
    if (S_ISDIR(mode) && has_below(list, entry.path)) return true;
    if (!S_ISREG(mode) || file_at(list, entry.path) == nullptr) {
      remove_tree_at(entry.folder, entry.name);
    }
    return false;
  };
  walk.sorted = true;  // the names are known before any goes
  walk_tree(content, walk);
}

WantData wanted_data(const DataNames& names, const Digest& digest, const DataList& list) {
  WantData want{digest.str(), {}, 0};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < list.files.size(); ++i) {
    const DataFile& file = list.files[i];
    const auto size = static_cast<std::int64_t>(file.size_bytes);
    if (size_there(path_in_copy(names.content(), file)) == size) continue;
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

/// The fingerprint of what is right; else takes away what is not what the list says.
std::optional<Digest> prove(const DataNames& names, const Digest& digest, const DataList& list) {
  Pool pool;
  QuietProgress progress;
  try {
    Digest before = data_fingerprint(names.content());
    const DataList found = data_list(names.content(), pool, progress);
    if (found.digest() == digest) return before;
    for (const DataFile& file : found.files) {
      const DataFile* right = file_at(list, file.path);
      if (right == nullptr || right->digest != file.digest) {
        remove_tree(path_in_copy(names.content(), file));
      }
    }
  } catch (const Error& error) {
    if (error.code() != "bad-data") throw;
    remove_tree(names.content());
  }
  return std::nullopt;
}

std::string finish(Store& store, const DataNames& names, const Digest& digest,
                   const DataList& list) {
  // A data set may have no file at all.
  if (!exists_unfollowed(names.content())) make_folders(names.content());
  const std::optional<Digest> proven = prove(names, digest, list);
  if (!proven) return render_message(wanted_data(names, digest, list));
  const Fd folder = open_file(names.folder(), O_RDONLY | O_DIRECTORY);
  if (::syncfs(folder.get()) != 0) throw os_error(errno, "cannot write the data to the disk");
  if (data_fingerprint(names.content()) != *proven) {
    throw failure("file-changed", "`{}` changed while it was read", names.content().string());
  }
  rename_to(names.content(), names.whole());
  (void)::fsync(folder.get());
  remove_tree(names.part());
  // Of a single file the rename is a change, too: the next job reads it once more.
  remember_data(store, names.whole(), *proven, digest);
  return render_at("staged", names.whole());
}

}  // namespace

void make_data_folder(const fs::path& store) {
  const fs::path folder = store / "data";
  make_own_folders(folder);
  if (::chmod(folder.c_str(), S_IRWXU) == 0) return;
  throw os_error(errno, "cannot keep others out of `{}`", folder.string());
}

std::string data_work(const std::vector<std::string>& words) {
  Store store{words.at(1)};
  const std::string& what = words.at(2);
  if (what == "look") return look_for_data(store, words);
  const Digest digest = Digest::parse(words.at(3));
  const DataNames names{store.root(), digest};
  const DataList list = declared_list(store, digest, words.at(4));
  make_folders(names.part());
  keep_listed(names.content(), list);
  if (what == "finish") return finish(store, names, digest, list);
  return render_message(wanted_data(names, digest, list));
}

}  // namespace mlenv::job
