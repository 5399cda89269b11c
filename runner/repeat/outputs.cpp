#include "runner/repeat/outputs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <functional>

#include "base/beneath.hpp"
#include "base/descriptor_path.hpp"
#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/tree_walk.hpp"
#include "runner/local/job.hpp"

namespace mlenv {
namespace {

std::string plain_path(const fs::path& path) {
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
  output.target = plain_path(fs::path(job_workdir(run)) / path);
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
  output.source = one.source;
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

/// What is open there, whatever has its name by now.
/// The run may have put a link in the place of any folder: none is followed.
class OutputWalk {
 public:
  explicit OutputWalk(const fs::path& shown) : shown_(shown) {}

  /// `file` is an open place (O_PATH).
  void run(const Fd& file) {
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) throw os_error(errno, "cannot read `{}`", at(""));
    if (S_ISDIR(status.st_mode)) {
      TreeWalk walk;
      walk.visit = [&](const TreeEntry& entry) {
        if (!S_ISDIR(entry.status.st_mode)) take(entry);
        return true;
      };
      walk_tree(Fd{::openat(file.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)}, shown_, walk);
    } else if (S_ISLNK(status.st_mode)) {
      add_link("", file.get(), "");
    } else if (S_ISREG(status.st_mode)) {
      add_content("", Fd{::open(descriptor_path(file).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)});
    } else {
      throw failure("io", "`{}` is a socket, pipe or device", at(""));
    }
  }

  std::vector<RecordedFile> take() {
    std::sort(files_.begin(), files_.end(),
              [](const RecordedFile& a, const RecordedFile& b) { return a.path < b.path; });
    return std::move(files_);
  }

 private:
  void take(const TreeEntry& entry) {
    // Nobody could name it, and what a deep tree's paths take together has no bound.
    if (entry.path.size() >= PATH_MAX) throw failure("io", "`{}` lies too deep", at(entry.path));
    if (S_ISLNK(entry.status.st_mode)) {
      add_link(entry.path, entry.folder, entry.name);
    } else if (S_ISREG(entry.status.st_mode)) {
      constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
      add_content(entry.path, Fd{::openat(entry.folder, entry.name.c_str(), kFlags)});
    } else {
      throw failure("io", "`{}` is a socket, pipe or device", at(entry.path));
    }
  }

  void add_link(std::string_view within, int folder, const std::string& name) {
    const std::optional<std::string> leads = link_at(folder, name);
    if (!leads) throw os_error(errno, "cannot read `{}`", at(within));
    files_.push_back({std::string(within), "link", leads->size(), Digest::of(*leads).str()});
  }

  void add_content(std::string_view within, const Fd& fd) {
    if (!fd) throw os_error(errno, "cannot open `{}`", at(within));
    FdSource source{fd.get()};
    Sha256 hash;
    copy(source, hash);
    const std::uint64_t size = hash.size_bytes();
    files_.push_back({std::string(within), "file", size, hash.finish().str()});
  }

  std::string at(std::string_view within) const {
    return within.empty() ? shown_.string() : short_path(shown_, within);
  }

  fs::path shown_;
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

namespace {

/// `open` gives the place itself (O_PATH), or errno.
RecordedOutput read_opened(const std::string& path, const fs::path& on_host,
                           const std::function<Fd()>& open) {
  RecordedOutput output;
  output.path = path;
  try {
    const Fd file = open();
    if (!file && errno == ENOENT) {
      output.kind = "absent";
      return output;
    }
    if (!file) throw os_error(errno, "cannot read `{}`", on_host.string());
    struct stat status {};
    const bool is_folder = ::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode);
    OutputWalk walk{on_host};
    walk.run(file);
    output.files = walk.take();
    output.kind = is_folder ? "folder" : output.files.front().kind;
    for (const RecordedFile& recorded : output.files) output.size_bytes += recorded.size_bytes;
    output.digest = is_folder ? digest_over(output.files) : output.files.front().digest;
  } catch (const std::exception& error) {
    output.kind = "unreadable";
    output.files.clear();
    output.why = error.what();
  }
  return output;
}

}  // namespace

RecordedOutput read_output(const std::string& path, const fs::path& on_host) {
  return read_opened(path, on_host,
                     [&] { return Fd{::open(on_host.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)}; });
}

std::vector<RecordedOutput> read_outputs(const std::vector<PlacedOutput>& outputs) {
  std::vector<RecordedOutput> found;
  for (const PlacedOutput& one : outputs) {
    if (one.within.empty()) {
      found.push_back(read_output(one.path, one.on_host));
      continue;
    }
    // The folders above it were the run's to replace.
    found.push_back(read_opened(one.path, one.on_host, [&] {
      const Fd source{::open(one.source.c_str(), O_PATH | O_CLOEXEC)};
      return open_beneath(source.get(), one.within, O_PATH | O_NOFOLLOW, Links::none);
    }));
  }
  return found;
}

}  // namespace mlenv
