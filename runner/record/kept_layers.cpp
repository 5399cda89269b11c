#include "runner/record/kept_layers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "base/digest_scan.hpp"
#include "base/disk_use.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "base/text.hpp"
#include "base/tree_walk.hpp"
#include "runner/record/record_files.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kImageFile = "image";  // the digest that it lies over
constexpr std::string_view kIdsFile = "ids";
constexpr std::string_view kGenerationFile = "generation";
constexpr std::string_view kOwnFilesFile = "own-files";

bool is_unfinished(const fs::path& folder) {
  return folder.filename().string().starts_with(kUnfinishedRun);
}

/// By its name. An unfinished one may be half removed under the id that it had.
bool is_layer(const fs::path& folder) {
  std::string name = folder.filename().string();
  if (has_temporary_name(name, kUnfinishedRun)) return true;
  if (is_unfinished(folder)) name.erase(0, kUnfinishedRun.size());
  return is_time_name(name);
}

/// nullopt where somebody holds it in a way that excludes this one. Only what is being made, or was
/// left unfinished, gets a file to lock: a new one in a layer that is being removed locks nothing.
std::optional<Fd> lock_of(const fs::path& folder, bool exclusive) {
  Fd fd = open_file(folder / kHeldFile, is_unfinished(folder) ? O_RDWR | O_CREAT : O_RDWR, 0600);
  while (::flock(fd.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) throw os_error(errno, "cannot lock `{}`", folder.string());
  }
  return fd;
}

/// The same, with patience: a run's last process, a copy of its mlenv, may hold what that held for
/// a moment after it has ended.
std::optional<Fd> lock_in_time(const fs::path& folder, bool exclusive) {
  constexpr std::chrono::seconds kPatience{1};
  constexpr int kPause = 20;  // milliseconds
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::optional<Fd> lock = lock_of(folder, exclusive);
  while (!lock && std::chrono::steady_clock::now() < until) {
    (void)::poll(nullptr, 0, kPause);
    lock = lock_of(folder, exclusive);
  }
  return lock;
}

/// The name still leads to what was locked: nobody took it away in between.
bool is_same(const fs::path& folder, const Fd& lock) {
  struct stat held {};
  struct stat named {};
  return ::fstat(lock.get(), &held) == 0 && ::stat((folder / kHeldFile).c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

Error layer_gone(const std::string& id) {
  return usage_error("no-kept-layer", "the kept layer `{}` is gone", id)
      .because("the records of the runs that wrote to it were taken away, and it with them")
      .hint("keep another one: `mlenv run --keep`");
}

}  // namespace

HeldLayer KeptLayers::make(std::string_view image) const {
  make_own_folders(folder_);
  TemporaryFolder made{folder_, kUnfinishedRun};
  std::optional<Fd> lock = lock_of(made.path(), true);
  if (!lock) {
    throw layer_gone(made.path().filename().string());  // taken away, as one of a killed mlenv
  }
  write_file(made.path() / kImageFile, image);
  write_file(made.path() / kGenerationFile, "1");
  constexpr int kTries = 100;
  for (int tries = 1;; ++tries) {
    std::string id = new_run_id(std::chrono::system_clock::now());
    fs::path folder = folder_ / id;
    if (::rename(made.path().c_str(), folder.c_str()) == 0) {
      (void)made.release();
      return {std::move(id), std::move(folder), *std::move(lock), 0};
    }
    if (tries == kTries || (errno != ENOTEMPTY && errno != EEXIST)) {
      throw os_error(errno, "cannot make a layer in `{}`", folder_.string());
    }
  }
}

HeldLayer KeptLayers::hold(const std::string& id, std::string_view image, bool to_write) const {
  const fs::path folder = folder_ / id;
  const auto over = read_file_if_exists(folder / kImageFile);
  if (!over) throw layer_gone(id);
  if (*over != image) {
    throw refusal("layer-differs", "the kept layer lies over another image")
        .because(fmt::format("it was made over {}, and this image is {}", *over, image))
        .hint(fmt::format("run that image: `mlenv run --from … {}`, or keep a new layer over this "
                          "one: `--keep` without `--from`",
                          *over));
  }
  if (!fs::exists(folder / kHeldFile)) throw layer_gone(id);
  std::optional<Fd> lock = lock_in_time(folder, to_write);
  if (!lock) {
    const std::string user = user_of(id);
    throw refusal("layer-busy", "the kept layer is in use")
        .because(user.empty() ? "by another mlenv"
                              : fmt::format("by run `{}`, which goes on", user))
        .hint(to_write ? "wait for its end, or start from it without `--keep` once nobody writes "
                         "to it"
                       : "wait for its end: it writes to the layer");
  }
  if (!is_same(folder, *lock)) throw layer_gone(id);
  const std::uint64_t before = generation(id);
  if (to_write) write_file(folder / kGenerationFile, std::to_string(before + 1));
  return {id, folder, *std::move(lock), before};
}

std::uint64_t KeptLayers::generation(const std::string& id) const {
  const std::string text = read_file_if_exists(folder_ / id / kGenerationFile).value_or("");
  std::uint64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

/// A run that goes on and uses it; empty: none that is recorded.
std::string KeptLayers::user_of(const std::string& id) const {
  for (const std::string& run : records_.ids()) {
    if (!records_.goes_on(run)) continue;
    try {
      const RunStart start = records_.read_brief(run).start;
      if (start.layer && start.layer->id == id) return run;
    } catch (const Error& error) {
      log::debug("run `{}` cannot be read: {}", run, error.what());
    }
  }
  return {};
}

std::vector<Digest> KeptLayers::needs() const {
  std::vector<Digest> needs;
  for (const fs::path& layer : list_folder(folder_)) {
    add_digests_in_file(layer / kImageFile, needs);
  }
  return needs;
}

std::uint64_t KeptLayers::size_bytes(const std::string& id) const {
  std::uint64_t bytes = 0;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    if (S_ISREG(entry.status.st_mode)) bytes += bytes_on_disk(entry.status);
    return true;
  };
  walk.unreadable = [](std::string_view, int) {};
  try {
    walk_tree(upper_of(folder_ / id), walk);
  } catch (const Error& error) {  // a run that goes on may move what is being counted
    log::debug("the layer `{}` is larger than was counted: {}", id, error.what());
  }
  return bytes;
}

/// Layers that recorded runs wrote to. A record that cannot be read may name any: it throws.
std::vector<std::string> KeptLayers::named() const {
  std::vector<std::string> ids;
  for (const std::string& run : records_.ids()) {
    const RunStart start = records_.read_brief(run).start;
    if (start.layer && start.layer->kept) ids.push_back(start.layer->id);
  }
  return ids;
}

/// First out of everybody's sight: what is half removed is nobody's layer.
void KeptLayers::remove(const fs::path& folder) const {
  fs::path unfinished = folder;
  if (!is_unfinished(folder)) {
    unfinished = folder_ / (std::string(kUnfinishedRun) + folder.filename().string());
    if (::rename(folder.c_str(), unfinished.c_str()) != 0) {
      throw os_error(errno, "cannot rename `{}`", folder.string());
    }
  }
  remove_tree(unfinished);
}

RemovedLayers KeptLayers::remove_unnamed() const {
  RemovedLayers removed;
  const auto stays = [&](const fs::path& what, const Error& error) {
    removed.staying.push_back(fmt::format("`{}` stays: {}", what.string(), error.what()));
  };
  std::vector<fs::path> unnamed = list_folder(folder_);
  std::erase_if(unnamed, [](const fs::path& folder) { return !is_layer(folder); });
  if (unnamed.empty()) return removed;
  const auto leave_named = [&](std::vector<fs::path>& folders) {
    const std::vector<std::string> ids = named();
    std::erase_if(folders, [&](const fs::path& folder) {
      return std::find(ids.begin(), ids.end(), folder.filename().string()) != ids.end();
    });
  };
  std::vector<Fd> locks;
  std::vector<fs::path> free;
  try {
    leave_named(unnamed);
    for (const fs::path& folder : unnamed) {
      try {
        const auto lock_folder = is_unfinished(folder) ? lock_of : lock_in_time;
        std::optional<Fd> lock = lock_folder(folder, true);
        if (!lock) continue;
        locks.push_back(*std::move(lock));
        free.push_back(folder);
      } catch (const Error& error) {
        std::error_code gone;  // by another mlenv in the meantime
        if (fs::exists(folder, gone)) stays(folder, error);
      }
    }
    // Again under the locks: a run holds its layer when it names it.
    if (!free.empty()) leave_named(free);
  } catch (const Error& error) {
    stays(folder_, error);
    return removed;
  }
  for (const fs::path& folder : free) {
    try {
      remove(folder);
      if (!is_unfinished(folder)) ++removed.count;
    } catch (const Error& error) {
      stays(folder, error);
    }
  }
  return removed;
}

/// Each ends with a zero byte, which no path has.
std::vector<std::string> own_files(const fs::path& layer) {
  std::vector<std::string> paths;
  const std::string text = read_file_if_exists(layer / kOwnFilesFile).value_or("");
  for (const std::string_view path : split(text, '\0')) {
    if (!path.empty()) paths.emplace_back(path);
  }
  return paths;
}

void note_own_files(const fs::path& layer, const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text.append(path).push_back('\0');
  write_file(layer / kOwnFilesFile, text);
}

void require_same_ids(const fs::path& layer, std::string_view maps) {
  std::string plain;
  for (const std::string_view line : split(trim(maps), '\n')) {
    for (const std::string_view word : split(line, ' ')) {
      if (!word.empty()) plain.append(word).push_back(' ');
    }
    plain.push_back('\n');
  }
  const auto noted = read_file_if_exists(layer / kIdsFile);
  if (!noted) return write_file(layer / kIdsFile, plain);
  if (*noted == plain) return;
  throw refusal("layer-differs", "the files of the kept layer belong to other user ids")
      .because(
          "it was kept by a run as root and this one is not, or the other way round, or with "
          "another `--user`")
      .hint("run it as then, or keep a new layer: `--keep` without `--from`");
}

}  // namespace mlenv
