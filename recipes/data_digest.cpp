#include "recipes/data_digest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr int kDeepest = 128;

struct FoundFile {
  std::string path;  ///< relative; empty: the data set is this one file
  struct stat status {};
};

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
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
    visit("", 0);
    std::sort(found_.begin(), found_.end(),
              [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; });
    return std::move(found_);
  }

 private:
  fs::path at(const std::string& path) const { return path.empty() ? root_ : root_ / path; }

  void visit(const std::string& path, int depth) {
    const struct stat status = status_of(at(path));
    if (!path.empty()) check_link(path);
    if (S_ISREG(status.st_mode)) {
      found_.push_back({path, status});
      return;
    }
    if (!S_ISDIR(status.st_mode)) {
      throw failure("bad-data", "`{}` is a socket, pipe or device, and no data", at(path).string());
    }
    if (depth > kDeepest) {
      throw failure("bad-data", "`{}` lies too deep; a link may lead back to its own folder",
                    at(path).string());
    }
    for (const fs::path& entry : list_folder(at(path))) {
      const std::string name = entry.filename().string();
      visit(path.empty() ? name : path + "/" + name, depth + 1);
    }
  }

  void check_link(const std::string& path) const {
    if (!fs::is_symlink(fs::symlink_status(at(path)))) return;
    const fs::path real = fs::canonical(at(path));
    const fs::path inside = real.lexically_relative(real_);
    if (!fs::read_symlink(at(path)).is_absolute() && !inside.empty() && *inside.begin() != "..") {
      return;
    }
    throw failure("bad-data", "the link `{}` leads out of the data set", at(path).string())
        .hint("put what it leads to in its place");
  }

  fs::path root_;
  fs::path real_;
  std::vector<FoundFile> found_;
};

Digest content_digest(const fs::path& path, Activity& activity) {
  const Fd fd = open_file(path);
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
  pool.for_each(files.size(), [&](std::size_t i) {
    digests[i] = content_digest(files[i].path.empty() ? path : path / files[i].path, activity);
  });
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
