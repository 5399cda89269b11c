#include "recipes/source_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "recipes/ignore.hpp"
#include "recipes/lock.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using FileKind = SourceFile::Kind;
using Fate = IgnoreRules::Fate;

std::string_view mode_of(FileKind kind) {
  if (kind == FileKind::link) return "120000";
  return kind == FileKind::executable ? "100755" : "100644";
}

Digest hash_of(const fs::path& path) {
  const Fd fd = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  FdSource source{fd.get()};
  Sha256 hash;
  copy(source, hash);
  return hash.finish();
}

/// What setuptools leaves beside a source that it built, and would take up again.
bool is_left_over(const std::string& path) {
  if (last_part(path).ends_with(".egg-info")) return true;
  return path == "build/lib" || path.starts_with("build/lib.") || path.starts_with("build/bdist.");
}

/// What of a folder counts.
struct Choice {
  const IgnoreRules* rules = nullptr;  ///< null: everything does
  std::string prefix;                  ///< of paths, as the rules know them
  const Recipe* recipe = nullptr;      ///< whose data sets do not
  std::set<fs::path> passed_over;
};

class Walk {
 public:
  Walk(const Choice& choice, SourceTree& tree) : choice_(choice), tree_(tree) {}

  void folder(const fs::path& from, const std::string& path, const Fate& fate) {
    for (const fs::path& entry : list_folder(from)) {
      visit(entry, below(path, entry.filename().string()), fate);
    }
  }

 private:
  void visit(const fs::path& from, const std::string& path, const Fate& parent) {
    Fate fate;
    const bool chosen = choice_.rules != nullptr;
    const std::string shown = below(choice_.prefix, path);
    if (chosen) {
      if (is_left_over(path) || choice_.passed_over.contains(from)) return;
      if (choice_.recipe != nullptr && is_data(*choice_.recipe, shown)) return;
      fate = choice_.rules->judge(shown, parent);
    }
    struct stat status {};
    if (::lstat(from.c_str(), &status) != 0) {
      throw os_error(errno, "cannot read `{}`", from.string());
    }
    if (S_ISDIR(status.st_mode)) {
      if (chosen && fate.left_out() && !choice_.rules->may_return(shown, fate)) return;
      return folder(from, path, fate);
    }
    if (chosen && fate.left_out()) return;
    add(from, path, status.st_mode);
  }

  void add(const fs::path& from, const std::string& path, mode_t mode) {
    if (S_ISLNK(mode)) {
      std::string link = fs::read_symlink(from).string();
      Digest content = Digest::of(link);
      tree_.files.push_back({path, FileKind::link, std::move(link), std::move(content)});
    } else if (S_ISREG(mode)) {
      const FileKind kind = (mode & S_IXUSR) != 0 ? FileKind::executable : FileKind::plain;
      tree_.files.push_back({path, kind, {}, hash_of(from)});
    } else {
      throw failure("bad-source", "`{}` is a socket, pipe or device", from.string())
          .hint("name it in the ignore file, or put it elsewhere");
    }
  }

  const Choice& choice_;
  SourceTree& tree_;
};

SourceTree walk(const fs::path& folder, const Choice& choice) {
  SourceTree tree{.folder = folder, .files = {}};
  Walk(choice, tree).folder(folder, {}, {});
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
    const Fd in = open_file(tree.folder / file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
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
