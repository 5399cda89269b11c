#include "builder/project_walk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <climits>
#include <numeric>

#include "base/error.hpp"
#include "base/files_beneath.hpp"
#include "base/paths.hpp"
#include "base/temporary_name.hpp"
#include "base/text.hpp"
#include "base/tree_walk.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

using Fate = IgnoreRules::Fate;

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) throw os_error(errno, "cannot read `{}`", path.string());
  return status;
}

/// Whether a link in a folder `depth` levels below what is copied leads to something there.
bool stays_inside(std::string_view link, int depth) {
  if (link.starts_with('/')) return false;
  for (const std::string_view part : split(link, '/')) {
    if (part == "..") --depth;
    if (depth < 0) return false;
    if (!part.empty() && part != "." && part != "..") ++depth;
  }
  return true;
}

class Walk {
 public:
  Walk(const Recipe& recipe, const ProjectIgnores& ignores, std::string record, Found& found)
      : recipe_(recipe),
        ignores_(ignores),
        record_(std::move(record)),
        data_(data_places(recipe)),
        found_(found) {}

  /// All below `from`: `shown` relative to the recipe's folder, `path` to the image's root.
  void folder(const fs::path& from, const std::string& shown, const std::string& path,
              const Fate& fate) {
    fates_ = {fate};
    if (!fate.left_out() && !path.empty()) add(ProjectFile::Kind::folder, from, shown, path);
    TreeWalk walk;
    walk.visit = [&](const TreeEntry& entry) {
      fates_.resize(entry.depth + 1);
      return visit(entry, {from / entry.path, below(shown, entry.path), below(path, entry.path)});
    };
    walk.gone = [&](std::string_view gone) {
      const auto depth = static_cast<std::size_t>(std::count(gone.begin(), gone.end(), '/'));
      const Names of{from / gone, below(shown, gone), {}};
      if (!gone.empty() && (is_passed_over(of) || judge(of, fates_.at(depth)).left_out())) return;
      throw failure("file-changed", "`{}` vanished while its folder was read",
                    gone.empty() ? from.string() : of.shown)
          .hint("run the command again when nothing writes there");
    };
    walk.sorted = true;
    walk.enter_mounts = true;
    walk_tree(open_canonical_folder(from), from, walk);
  }

  void file(const fs::path& from, const std::string& shown, const std::string& path,
            const struct stat& status) {
    ProjectFile& file = add(ProjectFile::Kind::file, from, shown, path);
    file.size_bytes = static_cast<std::uint64_t>(status.st_size);
    file.executable = (status.st_mode & S_IXUSR) != 0;
  }

 private:
  struct Names {
    fs::path from;
    std::string shown;
    std::string path;
  };

  bool is_passed_over(const Names& of) const {
    const bool our_unfinished =
        of.shown.starts_with(kTemporaryPrefix) && of.shown.find('/') == std::string::npos;
    return of.shown == record_ || our_unfinished || is_data(recipe_, of.shown) ||
           holds_data(of.from);
  }

  Fate judge(const Names& of, const Fate& parent) const {
    return ignores_.rules.judge(of.shown, parent);
  }

  /// Whether it is a folder of which something may be copied.
  bool visit(const TreeEntry& entry, const Names& of) {
    if (is_passed_over(of)) return false;
    const Fate fate = judge(of, fates_.back());
    if (fate.secret && !fate.ignored) found_.secrets.push_back(of.shown);
    const struct stat& status = entry.status;
    if (S_ISDIR(status.st_mode)) {
      if (fate.left_out() && !ignores_.rules.may_return(of.shown, fate)) return false;
      require_name(of);
      fates_.push_back(fate);
      if (!fate.left_out()) add(ProjectFile::Kind::folder, of.from, of.shown, of.path);
      return true;
    }
    if (fate.left_out()) return false;
    require_name(of);
    if (S_ISREG(status.st_mode)) {
      file(of.from, of.shown, of.path, status);
    } else if (S_ISLNK(status.st_mode)) {
      link(entry, of);
    } else {
      throw failure("bad-file", "`{}` is a socket, pipe or device, which no image holds", of.shown)
          .hint(fmt::format("name it in `{}`", ignores_.file));
    }
    return false;
  }

  void require_name(const Names& of) const {
    if (of.from.native().size() < PATH_MAX) return;
    throw failure("bad-file", "`{}` lies too deep", short_path({}, of.shown))
        .because("no program can name it: a path has 4,095 bytes at most")
        .hint(fmt::format("remove it, or name a folder that it is in in `{}`", ignores_.file));
  }

  /// No link is followed on the way here, so `from` is canonical as data_ is.
  bool holds_data(const fs::path& from) const {
    return std::find(data_.begin(), data_.end(), from) != data_.end();
  }

  void link(const TreeEntry& entry, const Names& of) {
    ProjectFile& file = add(ProjectFile::Kind::symlink, of.from, of.shown, of.path);
    file.link = read_link_at(entry.folder, entry.name);
    if (stays_inside(file.link, static_cast<int>(entry.depth))) return;
    throw failure("bad-file", "the link `{}` leads to `{}`, out of what is copied with it",
                  of.shown, file.link)
        .hint(fmt::format("name it in `{}`, or put what it leads to in its place", ignores_.file));
  }

  ProjectFile& add(ProjectFile::Kind kind, const fs::path& from, const std::string& shown,
                   const std::string& path) {
    check_no_whiteout(path);
    found_.files.push_back({kind, path, shown, from, 0, false, {}, std::nullopt});
    return found_.files.back();
  }

  const Recipe& recipe_;
  const ProjectIgnores& ignores_;
  std::string record_;
  std::vector<fs::path> data_;
  Found& found_;
  std::vector<Fate> fates_;  ///< of the folders from the top down to the one that is being read
};

}  // namespace

std::uint64_t Found::bytes() const {
  return std::accumulate(
      files.begin(), files.end(), std::uint64_t{0},
      [](std::uint64_t sum, const ProjectFile& file) { return sum + file.size_bytes; });
}

std::vector<fs::path> data_places(const Recipe& recipe) {
  std::vector<fs::path> places;
  for (const RecipeData& one : recipe.data) {
    std::error_code error;
    fs::path place = fs::weakly_canonical(fs::absolute(recipe.folder() / one.from, error), error);
    if (!error) places.push_back(std::move(place));  // else it is told by whoever reads it
  }
  return places;
}

IgnoreRules::Fate fate_of(const IgnoreRules& rules, const std::string& path) {
  Fate fate;
  if (path == ".") return fate;
  for (std::size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
    fate = rules.judge(std::string_view(path).substr(0, slash), fate);
    if (slash == std::string::npos) return fate;
  }
}

Found walk_source(const Recipe& recipe, const RecipeFile& file, const fs::path& real,
                  const ProjectIgnores& ignores, const std::string& record) {
  const std::string& source = file.source.text;
  Found found;
  found.recipe_file = &file;
  found.target = file.target;
  const Fate fate = fate_of(ignores.rules, source);
  const struct stat status = status_of(real);
  const auto refuse = [&](const std::string& what) {
    throw recipe_error(recipe, file.source, fmt::format("`{}` {}", source, what));
  };
  Walk walk{recipe, ignores, record, found};
  if (S_ISDIR(status.st_mode)) {
    walk.folder(real, source == "." ? "" : source, file.target.substr(1), fate);
  } else if (S_ISREG(status.st_mode)) {
    const std::string name{last_part(source)};
    if (file.into || file.target == "/") {
      found.target = "/" + below(std::string_view(file.target).substr(1), name);
    }
    if ((recipe.workdir + '/').starts_with(found.target + '/')) {
      refuse(fmt::format("is a file, and `{}` is where commands start: write `{}/` to put it there",
                         found.target, found.target));
    }
    if (!fate.left_out()) walk.file(real, source, found.target.substr(1), status);
  } else {
    refuse("is a socket, pipe or device, which no image holds");
  }
  for (const ProjectFile& one : found.files) {
    const std::string reserved = reserved_place("/" + one.path);
    if (!reserved.empty()) {
      refuse(fmt::format("would put `{}` where nothing can be copied to, {}", one.shown, reserved));
    }
  }
  if (found.files.empty() && fate.left_out()) {
    refuse(fate.ignored ? fmt::format("is left out by `{}`", ignores.file)
                        : fmt::format("is left out, for what its name says: write `!{}` in `{}` "
                                      "if the image is to hold it",
                                      source, ignores.file));
  }
  return found;
}

namespace {

Error changed(const ProjectFile& file) {
  return failure("file-changed", "`{}` changed while it was read", file.shown)
      .hint("run the command again when nothing writes it");
}

struct stat open_status(const Fd& fd, const ProjectFile& file) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw os_error(errno, "cannot read `{}`", file.shown);
  return status;
}

Fd open_project_file(const ProjectFile& file) {
  Fd fd = open_canonical(file.from, O_RDONLY | O_NONBLOCK);
  if (!fd && (errno == ELOOP || errno == ENOENT || errno == ENOTDIR)) throw changed(file);
  if (!fd) throw os_error(errno, "cannot read `{}`", file.shown);
  return fd;
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/// The whole file, and no other number of bytes than was found.
void stream(const ProjectFile& file, Sink& sink) {
  const Fd fd = open_project_file(file);
  const struct stat before = open_status(fd, file);
  if (!S_ISREG(before.st_mode) || static_cast<std::uint64_t>(before.st_size) != file.size_bytes) {
    throw changed(file);
  }
  Bytes buffer(std::size_t{256} << 10U);
  FdSource source{fd.get()};
  std::uint64_t left = file.size_bytes;
  while (const std::size_t count = source.read(buffer)) {
    if (count > left) throw changed(file);
    left -= count;
    sink.write(ByteView(buffer).first(count));
  }
  const struct stat after = open_status(fd, file);
  if (left != 0 || !same_time(before.st_mtim, after.st_mtim) ||
      !same_time(before.st_ctim, after.st_ctim)) {
    throw changed(file);
  }
}

}  // namespace

void hash_file(ProjectFile& file) {
  Sha256 hash;
  stream(file, hash);
  file.content = hash.finish();
}

void copy_file(const ProjectFile& file, Sink& sink) {
  Sha256 hash;
  FunctionSink both{[&](ByteView bytes) {
    hash.write(bytes);
    sink.write(bytes);
  }};
  stream(file, both);
  if (hash.finish() != file.content) throw changed(file);
}

}  // namespace mlenv
