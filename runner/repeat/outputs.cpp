#include "runner/repeat/outputs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/tree_walk.hpp"
#include "runner/local/job.hpp"

namespace mlenv {
namespace {

std::string plain(const fs::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Error bad_output(std::string_view path, std::string_view why) {
  return usage_error("bad-run-output", "`--outputs {}` {}", path, why);
}

/// The innermost mount over `target`; of two at one place the last.
std::optional<std::size_t> mount_over(const std::vector<Mount>& mounts, const std::string& target) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const std::string& at = mounts[i].target;
    if (target != at && !is_beneath(target, at)) continue;
    if (!found || at.size() >= mounts[*found].target.size()) found = i;
  }
  return found;
}

void refuse_links(const PlacedOutput& output, const fs::path& source) {
  fs::path at = source;
  for (const fs::path& part : fs::path(output.within)) {
    at /= part;
    if (!fs::is_symlink(fs::symlink_status(at))) continue;
    throw bad_output(output.path, fmt::format("lies behind the link `{}`", at.string()))
        .hint("name what the link leads to, and mount it where that is elsewhere");
  }
}

PlacedOutput placed(const LocalRun& run, const std::string& path,
                    const std::vector<Mount>& mounts) {
  PlacedOutput output;
  output.path = path;
  output.target = plain(fs::path(job_workdir(run)) / path);
  const auto mount = mount_over(mounts, output.target);
  if (!mount) {
    throw bad_output(path, fmt::format("is `{}`, which no mount holds: it would be gone with the "
                                       "container",
                                       output.target))
        .hint("write it below the project, or mount a folder there: `-v ./out:/out`");
  }
  const Mount& one = mounts[*mount];
  if (one.read_only) throw bad_output(path, fmt::format("lies in `{}`, read-only", one.target));
  output.mount = *mount;
  if (output.target != one.target) {
    output.within = fs::path(output.target).lexically_relative(one.target).string();
  }
  output.on_host = output.within.empty() ? one.source : one.source / output.within;
  if (output.within.empty() && run.project && *mount == 0) {
    throw bad_output(path, "is the project itself, whose files are what the run works with")
        .hint("name the folder or file in it that the run writes");
  }
  refuse_links(output, one.source);
  return output;
}

class OutputWalk {
 public:
  explicit OutputWalk(fs::path root) : root_(std::move(root)) {}

  void run() {
    struct stat status {};
    if (::lstat(root_.c_str(), &status) != 0) {
      throw os_error(errno, "cannot read `{}`", root_.string());
    }
    const std::string name = root_.string();
    if (!S_ISDIR(status.st_mode)) return take({AT_FDCWD, name, "", status});
    TreeWalk walk;
    walk.visit = [&](const TreeEntry& entry) {
      if (!S_ISDIR(entry.status.st_mode)) take(entry);
      return true;
    };
    walk_tree(root_, walk);
  }

  std::vector<RecordedFile> take() {
    std::sort(files_.begin(), files_.end(),
              [](const RecordedFile& a, const RecordedFile& b) { return a.path < b.path; });
    return std::move(files_);
  }

 private:
  void take(const TreeEntry& entry) {
    // Nobody could name it, and what a deep tree's paths take together has no bound.
    if (entry.path.size() >= PATH_MAX) {
      throw failure("io", "`{}` lies too deep", short_path(root_, entry.path));
    }
    std::string within{entry.path};
    if (S_ISLNK(entry.status.st_mode)) {
      const std::string leads = target_of(entry);
      files_.push_back({std::move(within), "link", leads.size(), Digest::of(leads).str()});
    } else if (S_ISREG(entry.status.st_mode)) {
      files_.push_back(content(std::move(within), entry));
    } else {
      throw failure("io", "`{}` is a socket, pipe or device", short_path(root_, entry.path));
    }
  }

  std::string target_of(const TreeEntry& entry) const {
    std::array<char, PATH_MAX> target{};
    const ssize_t size =
        ::readlinkat(entry.folder, entry.name.c_str(), target.data(), target.size());
    if (size < 0) throw os_error(errno, "cannot read `{}`", short_path(root_, entry.path));
    return {target.data(), static_cast<std::size_t>(size)};
  }

  RecordedFile content(std::string within, const TreeEntry& entry) const {
    const Fd fd{
        ::openat(entry.folder, entry.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    if (!fd) throw os_error(errno, "cannot open `{}`", short_path(root_, entry.path));
    FdSource source{fd.get()};
    Sha256 hash;
    copy(source, hash);
    const std::uint64_t size = hash.size_bytes();
    return {std::move(within), "file", size, hash.finish().str()};
  }

  fs::path root_;
  std::vector<RecordedFile> files_;
};

/// Of a folder without links the digest that a recipe's `data` has (docs/recipe.md).
std::string digest_over(const std::vector<RecordedFile>& files) {
  Sha256 list;
  constexpr std::size_t kAlgorithm = std::string_view("sha256:").size();
  for (const RecordedFile& file : files) {
    const std::string line = file.digest.substr(kAlgorithm) + (file.kind == "link" ? " @" : "  ") +
                             file.path + std::string(1, '\0');
    list.write(as_bytes(line));
  }
  return list.finish().str();
}

}  // namespace

std::vector<PlacedOutput> placed_outputs(const LocalRun& run,
                                         const std::vector<std::string>& paths) {
  const std::vector<Mount> mounts = job_mounts(run);
  std::vector<PlacedOutput> outputs;
  for (const std::string& path : paths) {
    if (path.empty()) throw bad_output(path, "names nothing");
    PlacedOutput output = placed(run, path, mounts);
    for (const PlacedOutput& other : outputs) {
      const bool same = other.target == output.target || is_beneath(other.target, output.target) ||
                        is_beneath(output.target, other.target);
      if (same) throw bad_output(path, fmt::format("is said by `--outputs {}`, too", other.path));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

std::vector<DeclaredOutput> declared(const LocalRun& run,
                                     const std::vector<PlacedOutput>& outputs) {
  std::vector<DeclaredOutput> all;
  for (const PlacedOutput& output : outputs) {
    std::error_code error;
    const bool existed = fs::exists(fs::symlink_status(output.on_host, error));
    const bool in_project = run.project && output.mount == 0;  // the first of a job's mounts
    all.push_back({output.path, output.target, existed,
                   in_project ? std::optional(output.within) : std::nullopt});
  }
  return all;
}

RecordedOutput read_output(const std::string& path, const fs::path& on_host) {
  RecordedOutput output;
  output.path = path;
  try {
    const fs::file_status status = fs::symlink_status(on_host);
    if (!fs::exists(status)) {
      output.kind = "absent";
      return output;
    }
    OutputWalk walk{on_host};
    walk.run();
    output.files = walk.take();
    output.kind = fs::is_directory(status) ? "folder" : output.files.front().kind;
    for (const RecordedFile& file : output.files) output.size_bytes += file.size_bytes;
    output.digest =
        fs::is_directory(status) ? digest_over(output.files) : output.files.front().digest;
  } catch (const std::exception& error) {
    output.kind = "unreadable";
    output.files.clear();
    output.why = error.what();
  }
  return output;
}

std::vector<RecordedOutput> read_outputs(const std::vector<PlacedOutput>& outputs) {
  std::vector<RecordedOutput> found;
  for (const PlacedOutput& one : outputs) found.push_back(read_output(one.path, one.on_host));
  return found;
}

}  // namespace mlenv
