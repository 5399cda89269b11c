#include "runner/job/code.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/files_beneath.hpp"
#include "base/paths.hpp"
#include "base/tar.hpp"
#include "base/text.hpp"
#include "images/store.hpp"
#include "recipes/text.hpp"
#include "runner/job/code_files.hpp"
#include "runner/job/private_blob.hpp"
#include "runner/record/code_state.hpp"
#include "runner/record/git_repository.hpp"

namespace mlenv::job {
namespace {

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) throw os_error(errno, "cannot read `{}`", path.string());
  return status;
}

/// Whether a link at `from` leads to something that lies in the folder too, by its words alone.
/// What goes up again behind another link may lead anywhere.
bool stays_inside(std::string_view from, std::string_view target,
                  const std::map<std::string, TarEntry>& all) {
  if (target.starts_with('/')) return false;
  std::string at{folder_of(from)};
  bool behind_link = false;
  for (const std::string_view part : split(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      at = below(at, part);
      const auto found = all.find(at);
      behind_link =
          behind_link || (found != all.end() && found->second.type == TarEntry::Type::symlink);
      continue;
    }
    if (at.empty() || behind_link) return false;
    at = folder_of(at);
  }
  return true;
}

/// What a folder holds, as it goes into the archive.
class Contents {
 public:
  Contents(fs::path folder, CodeFiles files, const CodeBounds& bounds)
      : folder_(std::move(folder)), at_(open_folder(folder_)), files_(std::move(files)) {
    for (const std::string& path : files_.paths) add(path);
    check_links();
    if (files_.paths.size() > bounds.most_files || bytes() > bounds.most_bytes) {
      throw too_large(bounds);
    }
  }

  std::uint64_t bytes() const {
    return std::accumulate(
        entries_.begin(), entries_.end(), std::uint64_t{0},
        [](std::uint64_t sum, const auto& entry) { return sum + entry.second.size_bytes; });
  }

  void write(Sink& out) const {
    for (const auto& [path, entry] : entries_) {
      out.write(tar_header(entry));
      if (entry.type == TarEntry::Type::file) write_file(path, entry, out);
    }
    out.write(tar_end());
  }

 private:
  void add(const std::string& path) {
    for (std::string_view folder = folder_of(path); !folder.empty(); folder = folder_of(folder)) {
      TarEntry& entry = entries_[std::string(folder)];
      entry.type = TarEntry::Type::folder;
      entry.path = folder;
      entry.mode = 0755;
    }
    const struct stat status = status_of(folder_ / path);
    TarEntry& entry = entries_[path];
    entry.path = path;
    if (S_ISLNK(status.st_mode)) {
      entry.type = TarEntry::Type::symlink;
      entry.link = fs::read_symlink(folder_ / path).string();
      entry.mode = 0777;
    } else {
      entry.size_bytes = static_cast<std::uint64_t>(status.st_size);
      entry.mode = (status.st_mode & S_IXUSR) != 0 ? 0755 : 0644;
    }
  }

  void check_links() const {
    for (const auto& [path, entry] : entries_) {
      if (entry.type != TarEntry::Type::symlink || stays_inside(path, entry.link, entries_)) {
        continue;
      }
      throw usage_error("bad-code",
                        "the link `{}` leads to `{}`, out of the project, which other nodes do not "
                        "have",
                        path, entry.link)
          .hint(fmt::format("mount what it leads to (`-v`), and name the link in `{}`",
                            files_.ignore_file));
    }
  }

  void write_file(const std::string& path, const TarEntry& entry, Sink& out) const {
    // Not through a folder that has become a link, to somewhere outside.
    const Fd file = open_file_beneath(at_.get(), path);
    struct stat status {};
    const bool same = file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                      static_cast<std::uint64_t>(status.st_size) == entry.size_bytes;
    if (!same) {
      throw failure("file-changed", "`{}` changed while it was read", path)
          .hint("again, when nothing writes it");
    }
    SliceSource bytes{file.get(), 0, entry.size_bytes};
    copy(bytes, out);
    static constexpr std::array<std::byte, kTarBlock> kZeros{};
    out.write(ByteView(kZeros).first(tar_padding(entry.size_bytes)));
  }

  /// Names the folders and files at the top that hold most of it.
  Error too_large(const CodeBounds& bounds) const {
    std::map<std::string, std::uint64_t> sizes;
    for (const auto& [path, entry] : entries_) {
      sizes[path.substr(0, path.find('/'))] += entry.size_bytes;
    }
    std::vector<std::pair<std::uint64_t, std::string>> order;
    for (const auto& [name, size] : sizes) order.emplace_back(size, name);
    std::sort(order.rbegin(), order.rend());
    std::vector<std::string> shown;
    for (const auto& [size, name] : order)
      shown.push_back(fmt::format("`{}` {} MB", name, size >> 20U));
    constexpr std::size_t kShown = 4;
    return usage_error(
               "bad-code",
               "the project holds {} in {} MB, more than a job's code may ({} files, {} MB)",
               counted(files_.paths.size(), "file"), bytes() >> 20U, bounds.most_files,
               bounds.most_bytes >> 20U)
        .because("most of it: " + listed(shown, kShown))
        .hint(
            fmt::format("name what is no code in `{}`, and mount data (`-v`)", files_.ignore_file));
  }

  fs::path folder_;
  Fd at_;
  CodeFiles files_;
  std::map<std::string, TarEntry> entries_;
};

CodeSnapshot store_contents(Store& store, const fs::path& folder, const CodeFiles& files,
                            const CodeBounds& bounds) {
  const Contents contents{folder, files, bounds};
  Store::Staged staged = store.stage();
  make_private(staged);
  Sha256 hash;
  FdSink file{staged.fd()};
  FunctionSink both{[&](ByteView data) {
    hash.write(data);
    file.write(data);
  }};
  contents.write(both);
  CodeSnapshot snapshot{hash.finish(), files.paths.size(), contents.bytes(), {}, {}};
  staged.commit(snapshot.digest);
  keep_private(store, snapshot.digest);
  snapshot.kept_back.assign(files.kept_back.begin(), files.kept_back.end());
  return snapshot;
}

Error no_commit(const fs::path& folder, const std::string& revision) {
  return failure("no-commit", "the code of `{}` cannot be taken from `{}`", revision,
                 folder.string())
      .hint("`git fetch`, and `git rev-parse` tells what it means there");
}

/// Before anything of it is written: objects are packed, and a few may stand for more than a disk
/// holds. Of each entry of `git ls-tree -l`: mode, type, name, size, TAB and path.
void check_bounds(std::string_view tree, const std::string& revision, const CodeBounds& bounds) {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  for (const std::string_view entry : split(tree, '\0')) {
    const std::string_view head = entry.substr(0, entry.find('\t'));
    const std::string_view digits = head.substr(std::min(head.rfind(' ') + 1, head.size()));
    std::uint64_t size = 0;
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), size);
    bytes += std::min(size, bounds.most_bytes + 1);
    files += entry.empty() ? 0 : 1;
    if (files <= bounds.most_files && bytes <= bounds.most_bytes) continue;
    throw usage_error("bad-code", "`{}` holds more than a job's code may ({} files, {} MB)",
                      revision, bounds.most_files, bounds.most_bytes >> 20U)
        .hint("take a folder of it: `--code FOLDER@REVISION`");
  }
}

/// The commit's whole name. What a checkout would leave empty is refused.
std::string resolve(const fs::path& folder, const std::string& revision, const CodeBounds& bounds) {
  try {
    const GitRepository repository{folder, GitRepository::References::all};
    require_own(repository.folders());
    const std::string said = repository.ask(
        {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"});
    std::string commit{first_line(said)};
    const std::string tree = repository.ask({"ls-tree", "-r", "-l", "-z", commit, "."});
    check_bounds(tree, revision, bounds);
    for (const std::string_view entry : split(tree, '\0')) {
      if (!entry.starts_with("160000 ")) continue;
      throw usage_error("bad-code", "`{}` is a submodule, which a checkout of {} does not hold",
                        entry.substr(entry.find('\t') + 1), revision)
          .hint("check it out with its submodules, and take that folder: `--code FOLDER`");
    }
    return commit;
  } catch (const NotKnown& error) {
    throw no_commit(folder, revision).because(error.what());
  }
}

}  // namespace

CodeSnapshot snapshot_of(Store& store, const fs::path& folder, const CodeBounds& bounds,
                         const std::vector<fs::path>& without) {
  return while_doing(fmt::format("taking the code in `{}`", folder.string()), [&] {
    CodeFiles files = code_files(folder);
    for (const fs::path& path : without) {
      const std::string at = path.lexically_relative(folder).string();
      std::erase_if(files.paths, [&](const std::string& one) { return is_beneath(one, at); });
    }
    return store_contents(store, folder, files, bounds);
  });
}

CodeSnapshot snapshot_of_commit(Store& store, const fs::path& folder, const std::string& revision,
                                const CodeBounds& bounds) {
  return while_doing(fmt::format("taking the code of `{}@{}`", folder.string(), revision), [&] {
    if (!find_program("git")) throw no_commit(folder, revision).because("git is not on PATH");
    const std::string commit = resolve(folder, revision, bounds);
    const TemporaryFolder scratch = store.scratch();
    const fs::path code = export_commit(folder, commit, scratch.path() / "code", bounds.most_bytes);
    CodeSnapshot snapshot = store_contents(store, code, all_files(code), bounds);
    snapshot.commit = commit;
    return snapshot;
  });
}

CodeWords parse_code(std::string_view text) {
  std::error_code error;
  const std::size_t at = text.rfind('@');
  CodeWords words{fs::path(text), {}};
  if (!fs::is_directory(words.folder, error) && at != std::string_view::npos) {
    words = {at == 0 ? fs::path(".") : fs::path(text.substr(0, at)),
             std::string(text.substr(at + 1))};
    if (words.revision.empty() || words.revision.starts_with('-')) {
      throw usage_error("bad-code", "`--code {}` names no revision", text)
          .hint("write one: `--code .@HEAD`");
    }
  }
  if (fs::is_directory(words.folder, error)) return words;
  throw usage_error("bad-code", "`--code {}`: there is no folder `{}`", text, words.folder.string())
      .hint("`--code FOLDER`, or `--code FOLDER@REVISION` of a git repository on this machine");
}

}  // namespace mlenv::job
