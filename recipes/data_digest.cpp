#include "recipes/data_digest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files_beneath.hpp"
#include "base/paths.hpp"
#include "base/tree_walk.hpp"

namespace mlenv {
namespace {

constexpr int kDeepestFolder = 128;

/// Folders that lead by links to one another make of few names as many paths as anybody likes: of
/// those behind links to folders so many are read, and for each of the others some more.
constexpr std::uint64_t kMostBehindLinks = 200'000;
constexpr std::uint64_t kMostBehindLinksEach = 10;

struct FoundFile {
  std::string path;  ///< relative; empty: the data set is this one file
  struct stat status {};
};

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    if (error == ELOOP) {
      throw failure("bad-data", "links lead to `{}` by too many others",
                    short_path({}, path.native()))
          .because(errno_text(error));
    }
    if (fs::is_symlink(fs::symlink_status(path))) {
      throw failure("bad-data", "the link `{}` leads nowhere", path.string())
          .because(errno_text(error));
    }
    throw os_error(error, "cannot read `{}`", path.string());
  }
  return status;
}

class DataWalk {
 public:
  explicit DataWalk(const fs::path& root) : root_(root), real_(fs::canonical(root)) {}

  std::vector<FoundFile> files() {
    direct_.push_back({"", 0});
    while (!direct_.empty()) look(take(direct_), false);
    while (!behind_links_.empty()) {
      if (seen_behind_ > kMostBehindLinks + kMostBehindLinksEach * seen_) throw too_many();
      look(take(behind_links_), true);
    }
    std::sort(found_.begin(), found_.end(),
              [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; });
    return std::move(found_);
  }

 private:
  struct Place {
    std::string path;
    int depth;
  };

  static Place take(std::vector<Place>& places) {
    Place last = std::move(places.back());
    places.pop_back();
    return last;
  }

  Error too_many() const {
    return failure("bad-data", "links in `{}` lead to the same folders again and again",
                   root_.string())
        .because(fmt::format("more than {} files and folders lie behind them, and {} elsewhere",
                             seen_behind_, seen_))
        .hint("remove the links to folders");
  }

  fs::path at(const std::string& path) const { return path.empty() ? root_ : root_ / path; }

  void look(const Place& place, bool behind_link) {
    const std::string& path = place.path;
    ++(behind_link ? seen_behind_ : seen_);
    const struct stat status = status_of(at(path));
    const bool is_link = !path.empty() && check_link(path);
    if (S_ISREG(status.st_mode)) {
      found_.push_back({path, status});
      return;
    }
    if (!S_ISDIR(status.st_mode)) {
      throw failure("bad-data", "`{}` is a socket, pipe or device, and no data", at(path).string());
    }
    if (place.depth > kDeepestFolder) {
      throw failure("bad-data", "`{}` lies too deep; a link may lead back to its own folder",
                    short_path(root_, path));
    }
    if (is_link && !behind_link) return behind_links_.push_back(place);
    const std::vector<fs::path> entries = list_folder(at(path));
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {  // the first is next
      (behind_link ? behind_links_ : direct_)
          .push_back({below(path, entry->filename().string()), place.depth + 1});
    }
  }

  /// Whether it is one. One that leads out is refused.
  bool check_link(const std::string& path) {
    struct stat link {};
    if (::lstat(at(path).c_str(), &link) != 0) {
      throw os_error(errno, "cannot read `{}`", at(path).string());
    }
    if (!S_ISLNK(link.st_mode)) return false;
    // By whatever way it is come to, it leads to the same.
    const bool is_new = checked_.emplace(link.st_dev, link.st_ino).second;
    if (!is_new && link.st_nlink == 1) return true;
    const fs::path real = fs::canonical(at(path));
    const fs::path inside = real.lexically_relative(real_);
    if (!fs::read_symlink(at(path)).is_absolute() && !inside.empty() && *inside.begin() != "..") {
      return true;
    }
    throw failure("bad-data", "the link `{}` leads out of the data set", at(path).string())
        .hint("put what it leads to in its place");
  }

  fs::path root_;
  fs::path real_;
  std::vector<Place> direct_;        ///< to be looked at
  std::vector<Place> behind_links_;  ///< the same, behind links to folders: after all others
  std::set<std::pair<dev_t, ino_t>> checked_;
  std::uint64_t seen_ = 0;
  std::uint64_t seen_behind_ = 0;
  std::vector<FoundFile> found_;
};

Digest content_digest(const fs::path& set, const std::string& path, Activity& activity) {
  const Fd fd = open_file_of_set(set, path);
  FdSource source{fd.get()};
  Sha256 hash;
  FunctionSink sink{[&](ByteView bytes) {
    hash.write(bytes);
    activity.advance(bytes.size());
  }};
  copy(source, sink);
  return hash.finish();
}

}  // namespace

DataList data_list(const fs::path& path, Pool& pool, Progress& progress) {
  const std::vector<FoundFile> files = DataWalk{path}.files();
  std::uint64_t total = 0;
  for (const FoundFile& file : files) total += static_cast<std::uint64_t>(file.status.st_size);
  Activity activity{progress, "read data `" + path.string() + "`", total};
  std::vector<std::optional<Digest>> digests(files.size());
  pool.for_each(files.size(),
                [&](std::size_t i) { digests[i] = content_digest(path, files[i].path, activity); });
  DataList list;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const struct stat& status = files[i].status;
    list.files.push_back({files[i].path, static_cast<std::uint64_t>(status.st_size),
                          (status.st_mode & S_IXUSR) != 0, digests[i].value()});
  }
  return list;
}

Digest data_digest(const fs::path& path, Pool& pool, Progress& progress) {
  return data_list(path, pool, progress).digest();
}

std::uint64_t data_size(const fs::path& path) {
  std::uint64_t sum = 0;
  for (const FoundFile& file : DataWalk{path}.files()) {
    sum += static_cast<std::uint64_t>(file.status.st_size);
  }
  return sum;
}

Digest data_fingerprint(const fs::path& path) {
  Sha256 list;
  for (const FoundFile& file : DataWalk{path}.files()) {
    const struct stat& status = file.status;
    const std::string line =
        fmt::format("{}:{} {} {} {} {}.{} {}.{}\n", file.path.size(), file.path, status.st_dev,
                    status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                    status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
    list.write(as_bytes(line));
  }
  return list.finish();
}

}  // namespace mlenv
