#include "runner/job/code_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/files_beneath.hpp"
#include "base/paths.hpp"
#include "base/process.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "base/tree_walk.hpp"
#include "recipes/ignore.hpp"
#include "runner/record/git_repository.hpp"

namespace mlenv::job {
namespace {

using IgnoreFate = IgnoreRules::Fate;

constexpr const char* kIgnoreFile = ".mlenvignore";

/// nullopt: it is gone.
std::optional<mode_t> mode_if_there(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return status.st_mode;
  if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return std::nullopt;
  throw os_error(errno, "cannot read `{}`", path.string());
}

bool is_code(mode_t mode) { return S_ISREG(mode) || S_ISLNK(mode); }

/// Results of a matrix, virtual environments and caches have a `.gitignore` of the one line `*`,
/// which is meant for more than git.
bool keeps_itself_out(const TreeEntry& folder) {
  constexpr std::uint64_t kMostRead = 4096;
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const Fd at{::openat(folder.folder, folder.name.c_str(), kFlags)};
  const Fd file = open_file_beneath(at.get(), ".gitignore");
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0 || size > kMostRead) return false;
  std::vector<std::string_view> lines;
  SliceSource source{file.get(), 0, size};
  const std::string text = read_all(source, size);
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view word = trim(line);
    if (!word.empty() && !word.starts_with('#')) lines.push_back(word);
  }
  return lines == std::vector<std::string_view>{"*"};
}

void require_name(const fs::path& folder, std::string_view path, const std::string& ignore_file) {
  if (!is_too_deep(folder, path)) return;
  throw usage_error("bad-code", "`{}` lies too deep", short_path(folder, path))
      .because("no program can name it: a path has 4,095 bytes at most")
      .hint(fmt::format("remove it, or name a folder that it is in in `{}`", ignore_file));
}

void walk_code(const fs::path& folder, std::function<bool(const TreeEntry&)> visit) {
  TreeWalk walk;
  walk.visit = std::move(visit);
  walk.sorted = true;
  walk.enter_mounts = true;
  walk_tree(folder, walk);
}

class Collector {
 public:
  Collector(fs::path folder, const IgnoreRules& rules, CodeFiles& found)
      : folder_(std::move(folder)), rules_(rules), found_(found) {}

  /// Everything, by the rules.
  void walk() {
    // Of the folders down to the one that is being read.
    std::vector<IgnoreFate> fates{IgnoreFate{}};
    walk_code(folder_, [&](const TreeEntry& entry) {
      fates.resize(entry.depth + 1);
      const std::string path{entry.path};
      const IgnoreFate fate = rules_.judge(path, fates.back());
      if (!S_ISDIR(entry.status.st_mode)) {
        take(path, fate, entry.status.st_mode);
        return false;
      }
      if (keeps_itself_out(entry)) return false;
      if (fate.left_out() && !rules_.may_return(path, fate)) {
        note(path, fate);
        return false;
      }
      require_name(folder_, path, found_.ignore_file);
      fates.push_back(fate);
      return true;
    });
  }

  /// What git says of the repository whose work tree `place` is in.
  void ask_git(const std::string& place) {
    const fs::path at = folder_ / place;
    const GitRepository repository{at};
    // Else what lies there is no repository, and git has said of the one around it what it knows.
    if (!place.empty() && repository.folders().top != fs::canonical(at)) return;
    list(repository, place, {"ls-files", "-z", "--cached"}, true);
    list(repository, place, {"ls-files", "-z", "--others", "--exclude-standard"}, false);
  }

 private:
  void list(const GitRepository& repository, const std::string& place,
            const std::vector<std::string>& words, bool tracked) {
    const std::string answer = repository.ask(words);
    for (std::string_view name : split(answer, '\0')) {
      if (name.ends_with('/')) name.remove_suffix(1);  // a repository of its own
      if (!name.empty()) visit(below(place, name), tracked);
    }
  }

  void visit(const std::string& path, bool tracked) {
    IgnoreFate fate = fate_of(path);
    if (tracked) fate.withheld = false;
    if (!fate.left_out()) require_name(folder_, path, found_.ignore_file);
    const auto mode = mode_if_there(folder_ / path);
    if (!mode) return;
    if (!S_ISDIR(*mode)) return take(path, fate, *mode);
    if (fate.left_out() && !rules_.may_return(path, fate)) return;
    if (mode_if_there(folder_ / path / ".git")) {
      ask_git(path);  // a submodule, or a repository that lies within
    }
  }

  /// `secret` also where a folder that it is in has such a name.
  IgnoreFate fate_of(const std::string& path) const {
    IgnoreFate fate;
    bool secret = false;
    for (std::size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      fate = rules_.judge(path.substr(0, slash), fate);
      secret = secret || fate.secret;
    }
    fate = rules_.judge(path, fate);
    fate.secret = fate.secret || secret;
    return fate;
  }

  void take(const std::string& path, const IgnoreFate& fate, mode_t mode) {
    if (!is_code(mode)) return;
    if (fate.left_out()) return note(path, fate);
    require_name(folder_, path, found_.ignore_file);
    found_.paths.insert(path);
  }
  void note(const std::string& path, const IgnoreFate& fate) {
    if (fate.withheld && fate.secret && !fate.ignored) found_.kept_back.insert(path);
  }

  fs::path folder_;
  const IgnoreRules& rules_;
  CodeFiles& found_;
};

/// The lines of `.mlenvignore` alone.
IgnoreRules own_rules(const fs::path& folder) {
  const auto text = read_small_file_if_exists(folder / kIgnoreFile, size_limit::kIgnoreFile);
  return text ? IgnoreRules::parse(*text, folder / kIgnoreFile) : IgnoreRules{};
}

/// A folder that its repository ignores, such as one in a home folder whose settings are tracked.
bool is_ignored_by_git(const fs::path& folder) {
  try {
    (void)GitRepository{folder}.ask({"check-ignore", "-q", "--", "."});
    return true;
  } catch (const NotKnown&) {
    return false;
  }
}

/// What git tracked before a link took its folder's place is not there any more.
void drop_behind_links(std::set<std::string>& paths) {
  for (auto at = paths.begin(); at != paths.end();) {
    bool behind = false;
    for (std::size_t slash = at->find('/'); slash != std::string::npos && !behind;
         slash = at->find('/', slash + 1)) {
      behind = paths.contains(at->substr(0, slash));
    }
    at = behind ? paths.erase(at) : std::next(at);
  }
}

CodeFiles of_git(const fs::path& folder) {
  CodeFiles found;
  found.ignore_file = ".gitignore";
  const IgnoreRules rules = own_rules(folder);
  try {
    Collector(folder, rules, found).ask_git("");
  } catch (const NotKnown& error) {
    throw usage_error("bad-code", "git does not say what the code in `{}` is", folder.string())
        .because(error.what())
        .hint("mend what git complains of, or take another folder: `--code FOLDER`");
  }
  drop_behind_links(found.paths);
  return found;
}

}  // namespace

CodeFiles code_files(const fs::path& folder) {
  if (find_program("git") && has_git_folders(folder) && !is_ignored_by_git(folder)) {
    return of_git(folder);
  }
  CodeFiles found;
  const ProjectIgnores ignores = read_ignores(folder);
  found.ignore_file = ignores.file;
  Collector(folder, ignores.rules, found).walk();
  return found;
}

CodeFiles all_files(const fs::path& folder) {
  CodeFiles found;
  found.ignore_file = kIgnoreFile;
  walk_code(folder, [&](const TreeEntry& entry) {
    const std::string path{entry.path};
    require_name(folder, path, found.ignore_file);
    if (is_code(entry.status.st_mode)) found.paths.insert(path);
    return true;
  });
  return found;
}

}  // namespace mlenv::job
