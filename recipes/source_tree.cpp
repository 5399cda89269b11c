#include "recipes/source_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/error.hpp"
#include "base/file_digest.hpp"
#include "base/files_beneath.hpp"
#include "base/paths.hpp"
#include "base/temporary_name.hpp"
#include "base/tree_walk.hpp"
#include "recipes/ignore.hpp"
#include "recipes/lock.hpp"
#include "recipes/text.hpp"
#include "recipes/vendored.hpp"

namespace mlenv {
namespace {

using FileKind = SourceFile::Kind;
using Fate = IgnoreRules::Fate;

std::string_view mode_of(FileKind kind) {
  if (kind == FileKind::link) return "120000";
  return kind == FileKind::executable ? "100755" : "100644";
}

bool is_still_there(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(fs::symlink_status(path, unknown));
}

/// A tree of which a part was read before a change and a part after it is none.
Error vanished(const fs::path& path) {
  return failure("file-changed", "`{}` vanished while its folder was read", path.string())
      .hint("run the command again when nothing writes there");
}

/// What `read` makes of it.
template <typename Read>
auto unless_vanished(const fs::path& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != "absent" && is_still_there(path)) throw;
  } catch (const fs::filesystem_error&) {
    if (is_still_there(path)) throw;
  }
  throw vanished(path);
}

/// Folders that setuptools leaves beside a source that it built, and would take up again (its
/// documents: `build_base`, `build_lib`, `build_temp`, `build_scripts`, `bdist_base`, strict
/// editable installs, `egg_info`, `.eggs`). What else is in `build` is the project's own.
bool is_left_over(const std::string& path) {
  if (last_part(path).ends_with(".egg-info") || path == ".eggs" || path == "build/lib") return true;
  constexpr std::array<std::string_view, 5> kBeginnings = {
      "build/lib.", "build/temp.", "build/bdist.", "build/scripts-", "build/__editable__."};
  return path.find('/', path.find('/') + 1) == std::string::npos &&
         std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view one) { return path.starts_with(one); });
}

/// Beside a recipe, by the first line that mlenv writes.
bool is_record(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending != ".lock" && ending != ".built") return false;
  constexpr std::string_view kLine = "# Written by `mlenv ";
  const Fd fd = open_canonical_file(file);
  std::array<char, kLine.size()> begin{};
  const ssize_t count = ::pread(fd.get(), begin.data(), begin.size(), 0);
  return std::string_view(begin.data(), count < 0 ? 0 : static_cast<std::size_t>(count)) == kLine;
}

/// A file that is being written.
bool is_temporary(const fs::path& file, const fs::path& home) {
  const fs::path parent = file.parent_path();
  return (parent == home || parent == home / kVendorFolder) &&
         file.filename().string().starts_with(kTemporaryPrefix);
}

/// What mlenv itself writes into a recipe's folder, `home`, of whichever recipe there.
bool is_written_here(const fs::path& file, const fs::path& home) {
  return is_temporary(file, home) || (file.parent_path() == home && is_record(file));
}

/// What of a folder counts.
struct Choice {
  const IgnoreRules* rules = nullptr;  ///< null: everything does
  std::string prefix;                  ///< of paths, as the rules know them
  const Recipe* recipe = nullptr;      ///< whose data sets do not
  fs::path home;                       ///< the recipe's folder
  std::set<fs::path> passed_over;
};

class Walk {
 public:
  Walk(const Choice& choice, SourceTree& tree) : choice_(choice), tree_(tree) {}

  void run() {
    enter({}, {});
    TreeWalk walk;
    walk.visit = [&](const TreeEntry& entry) { return visit(entry); };
    walk.gone = [&](std::string_view path) { miss(std::string(path)); };
    walk.sorted = true;
    walk.enter_mounts = true;
    walk_tree(open_canonical_folder(tree_.folder), tree_.folder, walk);
  }

 private:
  /// A folder that is being read.
  struct Level {
    Fate fate;
    std::set<std::string> copies;  ///< of `mlenv vendor`
  };

  void enter(const std::string& path, Fate fate) {
    Level level{std::move(fate), {}};
    if (choice_.rules != nullptr) level.copies = vendored_names(tree_.folder / path);
    levels_.push_back(std::move(level));
  }

  /// nullopt: it does not count, whatever it is.
  std::optional<Fate> judge(const std::string& path, const fs::path& from) const {
    if (choice_.rules == nullptr) return Fate{};
    const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
    const Level& level = levels_.at(depth);
    const std::string name{last_part(path)};
    const bool written = !level.copies.empty() && name.starts_with(kTemporaryPrefix);
    if (written || level.copies.contains(name) || choice_.passed_over.contains(from)) {
      return std::nullopt;
    }
    const std::string shown = below(choice_.prefix, path);
    if (choice_.recipe != nullptr && is_data(*choice_.recipe, shown)) return std::nullopt;
    return choice_.rules->judge(shown, level.fate);
  }

  void miss(const std::string& path) const {
    if (path.empty()) throw vanished(tree_.folder);
    const fs::path from = tree_.folder / path;
    const std::optional<Fate> fate = judge(path, from);
    const bool chosen = choice_.rules != nullptr;
    if (!fate || (chosen && (fate->left_out() || is_temporary(from, choice_.home)))) return;
    throw vanished(from);
  }

  /// Whether it is a folder that counts.
  bool visit(const TreeEntry& entry) {
    levels_.resize(entry.depth + 1);
    const std::string path{entry.path};
    const fs::path from = tree_.folder / path;
    std::optional<Fate> fate = judge(path, from);
    if (!fate) return false;
    const mode_t mode = entry.status.st_mode;
    const bool chosen = choice_.rules != nullptr;
    if (S_ISDIR(mode)) {
      if (chosen && is_left_over(path)) return false;
      const std::string shown = below(choice_.prefix, path);
      if (fate->left_out() && !choice_.rules->may_return(shown, *fate)) return false;
      require_name(path);
      enter(path, *std::move(fate));
      return true;
    }
    if (fate->left_out()) return false;
    require_name(path);
    unless_vanished(from, [&] {
      const bool written = chosen && S_ISREG(mode) && is_written_here(from, choice_.home);
      if (!written) add(entry, path);
    });
    return false;
  }

  void require_name(std::string_view path) const {
    if (!is_too_deep(tree_.folder, path)) return;
    throw failure("bad-source", "`{}` lies too deep", short_path(tree_.folder, path))
        .because("no program can name it: a path has 4,095 bytes at most")
        .hint("remove it, or name a folder that it is in in the ignore file");
  }

  void add(const TreeEntry& entry, const std::string& path) {
    const fs::path from = tree_.folder / path;
    const mode_t mode = entry.status.st_mode;
    if (S_ISLNK(mode)) {
      std::string link = read_link_at(entry.folder, entry.name);
      Digest content = Digest::of(link);
      tree_.files.push_back({path, FileKind::link, std::move(link), std::move(content)});
    } else if (S_ISREG(mode)) {
      const FileKind kind = (mode & S_IXUSR) != 0 ? FileKind::executable : FileKind::plain;
      tree_.files.push_back({path, kind, {}, digest_of_file(open_canonical_file(from))});
    } else {
      throw failure("bad-source", "`{}` is a socket, pipe or device", from.string())
          .hint("name it in the ignore file, or put it elsewhere");
    }
  }

  const Choice& choice_;
  SourceTree& tree_;
  std::vector<Level> levels_;  ///< from the top down to the one whose entries are visited
};

SourceTree walk(const fs::path& folder, const Choice& choice) {
  SourceTree tree{.folder = fs::canonical(folder), .files = {}};
  Walk(choice, tree).run();
  std::sort(tree.files.begin(), tree.files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return tree;
}

}  // namespace

Digest SourceTree::digest() const {
  Sha256 hash;
  for (const SourceFile& file : files) {
    std::string line = fmt::format("{} {} {}", file.content.hex(), mode_of(file.kind), file.path);
    line += '\0';
    hash.write(as_bytes(line));
  }
  return hash.finish();
}

SourceTree read_source_tree(const fs::path& folder) { return walk(folder, {}); }

SourceTree read_project_tree(const Recipe& recipe, const std::string& path) {
  const fs::path home = fs::canonical(recipe.folder());
  const fs::path folder = fs::canonical(home / path);
  const bool inside = is_beneath(folder.string(), home.string());
  const ProjectIgnores ignores = read_ignores(inside ? recipe.folder() : folder);
  Choice choice;
  choice.rules = &ignores.rules;
  choice.home = home;
  if (inside) {
    choice.recipe = &recipe;
    if (folder != home) choice.prefix = folder.lexically_relative(home).string();
  }
  const fs::path own = home / recipe.path.filename();
  choice.passed_over = {own, lock_path(own), built_path(own)};
  SourceTree tree = walk(folder, choice);
  if (!tree.files.empty()) return tree;
  throw failure("bad-source", "nothing of `{}` is left to build from", path)
      .hint(fmt::format("write `!` and its path in `{}`, if that leaves it out", ignores.file));
}

void copy_source_tree(const SourceTree& tree, const fs::path& to) {
  make_folders(to);
  for (const SourceFile& file : tree.files) {
    const fs::path target = to / file.path;
    make_folders(target.parent_path());
    if (file.kind == FileKind::link) {
      fs::create_symlink(file.link, target);
      continue;
    }
    const fs::path from = tree.folder / file.path;
    const Fd in = unless_vanished(from, [&] { return open_canonical_file(from); });
    const Fd out = open_file(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    FdSource source{in.get()};
    Sha256 hash;
    FunctionSink both{[&](ByteView bytes) {
      hash.write(bytes);
      write_all(out.get(), bytes);
    }};
    copy(source, both);
    if (hash.finish() != file.content) {
      throw failure("file-changed", "`{}` changed while it was read", file.path)
          .hint("run the command again when nothing writes it");
    }
    const mode_t mode = file.kind == FileKind::executable ? 0755 : 0644;
    if (::fchmod(out.get(), mode) != 0) {
      throw os_error(errno, "cannot write `{}`", target.string());
    }
  }
}

}  // namespace mlenv
