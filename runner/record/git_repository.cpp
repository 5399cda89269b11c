#include "runner/record/git_repository.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/files_beneath.hpp"
#include "base/paths.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/tree_walk.hpp"
#include "runner/local/machine.hpp"
#include "runner/record/git_config.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::seconds kGitDeadline{60};
constexpr std::uint64_t kMostIndex = std::uint64_t{1} << 30U;
constexpr std::uint64_t kMostReferences = std::uint64_t{256} << 20U;
constexpr std::size_t kMostReferenceFiles = 100'000;

/// What it may take: more is an object or a list made to fill the machine. Packs are not counted.
constexpr rlim_t kMostMemory = rlim_t{4} << 30U;
constexpr const char* kMostOfOneObject = "GIT_ALLOC_LIMIT=1g";

/// Settings that say how content is read, and name no program and no file. Values of the
/// repository's own are letters, digits, `.` and `-` alone.
constexpr std::array<std::string_view, 12> kPlainSettings = {"core.autocrlf",
                                                             "core.eol",
                                                             "core.filemode",
                                                             "core.symlinks",
                                                             "core.ignorecase",
                                                             "core.checkstat",
                                                             "core.trustctime",
                                                             "core.precomposeunicode",
                                                             "index.sparse",
                                                             "core.sparsecheckout",
                                                             "core.sparsecheckoutcone",
                                                             "extensions.objectformat"};
/// Of the person, who may name files of theirs.
constexpr std::array<std::string_view, 2> kOwnPaths = {"core.excludesfile", "core.attributesfile"};

bool is_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '.' || c == '-'; });
}

/// For `HEAD@{upstream}`: where a branch comes from.
bool is_branch_setting(std::string_view key, std::string_view value) {
  const auto plain = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
      return is_alphanumeric(c) || std::string_view{"._/+:*-"}.find(c) != std::string_view::npos;
    });
  };
  const bool named =
      (key.starts_with("branch.") && (key.ends_with(".remote") || key.ends_with(".merge"))) ||
      (key.starts_with("remote.") && key.ends_with(".fetch"));
  return named && plain(key) && plain(value);
}

bool contains(const auto& list, std::string_view one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

std::vector<std::string> kept_environment(bool with_settings) {
  std::vector<std::string> kept;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view text = *at;
    const bool git = text.starts_with("GIT_");
    if (git && !(with_settings && text.starts_with("GIT_CONFIG"))) continue;
    if (text.starts_with("SUDO_UID=") || text.starts_with("LC_ALL=")) continue;
    if (!with_settings && (text.starts_with("HOME=") || text.starts_with("XDG_CONFIG_HOME="))) {
      continue;
    }
    kept.emplace_back(text);
  }
  kept.emplace_back("LC_ALL=C.UTF-8");
  return kept;
}

/// Without the person's and the machine's settings, nothing fetched, nothing written but what it is
/// asked to write.
std::vector<std::string> quiet_environment(const fs::path& home) {
  std::vector<std::string> own = kept_environment(false);
  for (const char* one : {"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
                          "GIT_ALLOW_PROTOCOL=", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0",
                          "GIT_TERMINAL_PROMPT=0", kMostOfOneObject}) {
    own.emplace_back(one);
  }
  own.push_back("HOME=" + home.string());
  return own;
}

Captured run_limited(Command command, const std::string& program, std::string_view input) {
  static const std::optional<fs::path> limiter = find_program("prlimit");
  std::vector<std::string> words;
  if (limiter) {
    // A lower limit of the caller's cannot be raised, and holds.
    rlimit now{RLIM_INFINITY, RLIM_INFINITY};
    (void)::getrlimit(RLIMIT_DATA, &now);
    const rlim_t most = std::min(now.rlim_max, kMostMemory);
    words = {limiter->string(), fmt::format("--data={}", most), "--core=0", "--"};
  }
  words.push_back(program);
  command.argv.insert(command.argv.begin(), words.begin(), words.end());
  try {
    return run_captured(std::move(command), kGitDeadline, input);
  } catch (const Error& error) {
    if (error.code() != "timeout") throw;
    throw NotKnown(fmt::format("git did not answer within {} seconds", kGitDeadline.count()));
  }
}

std::string git_program() {
  const std::optional<fs::path> git = find_program("git");
  if (!git) throw NotKnown("git is not on PATH");
  return git->string();
}

/// Where git would look for ignored names of the person's by itself (gitignore(5)).
std::optional<std::string> own_file(const char* name) {
  const std::map<std::string, std::string> variables = caller_variables();
  const auto folder = variables.find("XDG_CONFIG_HOME");
  if (folder != variables.end() && !folder->second.empty()) {
    return (fs::path(folder->second) / "git" / name).string();
  }
  const auto home = variables.find("HOME");
  if (home == variables.end() || home->second.empty()) return std::nullopt;
  return (fs::path(home->second) / ".config/git" / name).string();
}

OwnGitSettings read_own_settings() {
  const ScratchFolder empty;
  Command command{Purpose{"git-settings"}};
  command.argv = {"config", "--includes", "--list", "-z"};
  command.env = kept_environment(true);
  command.env->push_back("GIT_DIR=" + (empty.path() / "none").string());  // asks no repository
  command.folder = empty.path();
  const Captured said = run_limited(std::move(command), git_program(), {});
  OwnGitSettings own;
  const std::map<std::string, std::string> variables = caller_variables();
  for (const auto& [key, name] :
       {std::pair{"core.excludesfile", "ignore"}, std::pair{"core.attributesfile", "attributes"}}) {
    if (auto path = own_file(name)) own.values.emplace_back(key, *std::move(path));
  }
  for (const std::string_view one : split(said.out, '\0')) {
    const std::size_t end = one.find('\n');
    const std::string_view key = one.substr(0, end);
    std::string value{end == std::string_view::npos ? "true" : one.substr(end + 1)};
    if (key == "safe.directory") {
      if (value.empty()) own.safe_folders.clear();
      own.safe_folders.push_back(std::move(value));
    } else if (key == "filter.lfs.smudge" || key == "filter.lfs.process") {
      own.lfs = !value.empty() && value.find("--skip") == std::string::npos;
    } else if (contains(kOwnPaths, key)) {
      const auto home = variables.find("HOME");
      if (value.starts_with("~/") && home != variables.end())
        value = home->second + value.substr(1);
      own.values.emplace_back(key, std::move(value));
    } else if (contains(kPlainSettings, key) && is_value(value) &&
               !key.starts_with("extensions.")) {
      own.values.emplace_back(key, std::move(value));
    }
  }
  return own;
}

/// As git has it: work tree, `.git` and what that leads to are the caller's (git-config(1),
/// "safe.directory").
void check_owner(const GitFolders& folders) {
  const std::string top = folders.top.string();
  for (const std::string& safe : own_git_settings().safe_folders) {
    const bool below =
        safe.ends_with("/*") && is_beneath(top, std::string_view(safe).substr(0, safe.size() - 2));
    if (safe == "*" || safe == top || safe == folders.git.string() || below) return;
  }
  for (const fs::path& one : {folders.top, folders.top / ".git", folders.git}) {
    struct stat status {};
    if (::lstat(one.c_str(), &status) != 0)
      throw NotKnown(fmt::format("`{}` is gone", one.string()));
    if (status.st_uid == ::geteuid()) continue;
    throw NotKnown(
        fmt::format("`{}` belongs to another user, of id {} (`git config --global --add "
                    "safe.directory {}` has it trusted)",
                    one.string(), status.st_uid, top));
  }
}

/// As a value in git's file of settings.
std::string quoted_value(std::string_view text) {
  std::string value = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') value += '\\';
    value += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return value + '"';
}

/// Copies with time of change, which git compares with those of files.
bool copy_beneath(int from, const std::string& name, const fs::path& to, std::uint64_t most) {
  const Fd file = open_file_beneath(from, name);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return false;
  if (static_cast<std::uint64_t>(status.st_size) > most) {
    throw NotKnown(fmt::format("`{}` of the repository is larger than {} MB", name, most >> 20U));
  }
  make_folders(to.parent_path());
  const Fd out = open_file(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  FdSink sink{out.get()};
  SliceSource source{file.get(), 0, static_cast<std::uint64_t>(status.st_size)};
  copy(source, sink);
  const std::array<timespec, 2> times = {status.st_mtim, status.st_mtim};
  (void)::futimens(out.get(), times.data());
  return true;
}

/// The files below a folder of references, links passed over.
void copy_tree(const fs::path& from, const std::string& name, const fs::path& to) {
  const Fd folder = open_folder(from);
  std::size_t seen = 0;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const bool too_long =
        is_too_deep(to / name, entry.path) || is_too_deep(from / name, entry.path);
    if (++seen > kMostReferenceFiles || too_long) {
      throw NotKnown("the repository has too many references");
    }
    if (S_ISREG(entry.status.st_mode)) {
      const std::string path = below(name, entry.path);
      copy_beneath(folder.get(), path, to / path, kMostReferences);
    }
    return true;
  };
  walk.unreadable = [&](std::string_view path, int error) {
    throw NotKnown(
        fmt::format("`{}` cannot be read: {}", short_path(from / name, path), errno_text(error)));
  };
  Fd top{::openat(folder.get(), name.c_str(),
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (top) walk_tree(std::move(top), from / name, walk);
}

NotKnown no_file(const fs::path& path) {
  return NotKnown(fmt::format("`{}` is a pipe or a device, and git would wait for it",
                              printable(path.string())));
}

bool blocks(const struct stat& status) {
  return !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode);
}

/// What is moved meanwhile ends the look: the deadline is for the rest.
void walk_quietly(const fs::path& top, TreeWalk walk) {
  walk.unreadable = [](std::string_view, int) {};  // git says so
  try {
    walk_tree(top, walk);
  } catch (const Error& error) {
    if (error.code() != "file-changed") throw;
  }
}

/// git opens objects, and what else lies with them, by their names.
void require_objects(const fs::path& objects) {
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    struct stat target = entry.status;
    if (S_ISLNK(entry.status.st_mode) &&
        ::fstatat(entry.folder, entry.name.c_str(), &target, 0) != 0) {
      return true;
    }
    if (blocks(target)) throw no_file(objects / entry.path);
    return true;
  };
  walk_quietly(objects, std::move(walk));
}

/// It opens these too, in each folder of the work tree. Of a large one the rest is not looked at.
void require_settings_in(const fs::path& top) {
  constexpr std::size_t kMostLookedAt = 20'000;
  std::size_t seen = 0;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const bool is_read =
        entry.name == ".gitignore" || entry.name == ".gitattributes" || entry.name == ".gitmodules";
    if (is_read && blocks(entry.status)) throw no_file(top / entry.path);
    return ++seen < kMostLookedAt && entry.name != ".git";
  };
  walk_quietly(top, std::move(walk));
}

/// `ref: refs/heads/main`: that name. Empty where it is a commit, or nothing that git would write.
std::string named_ref_in(const std::string& text) {
  constexpr std::string_view kPrefix = "ref:";
  if (!text.starts_with(kPrefix)) return {};
  const std::string_view name = trim(std::string_view(text).substr(kPrefix.size()));
  for (const std::string_view part : split(name, '/')) {
    if (part.empty() || part.front() == '.') return {};
  }
  return name.starts_with("refs/") ? std::string(name) : std::string{};
}

}  // namespace

const OwnGitSettings& own_git_settings() {
  static const OwnGitSettings own = read_own_settings();
  return own;
}

GitRepository::GitRepository(const fs::path& project, References references)
    : folders_(find_git_folders(project)), project_(fs::canonical(project)) {
  check_owner(folders_);
  require_objects(folders_.common / "objects");
  require_settings_in(folders_.top);
  copy_files(references);
  write_settings();
}

void GitRepository::copy_files(References references) {
  const fs::path& to = scratch_.path();
  const Fd git = open_folder(folders_.git);
  const Fd common = open_folder(folders_.common);
  make_folders(to / "refs");
  make_folders(to / "objects");
  const auto own = [&](const char* name) {
    return copy_beneath(git.get(), name, to / name, kMostIndex);
  };
  const auto shared = [&](const char* name) {
    return copy_beneath(common.get(), name, to / name, kMostReferences);
  };
  if (!own("HEAD")) throw NotKnown(fmt::format("`{}` has no `HEAD`", folders_.git.string()));
  own("index");
  own("info/sparse-checkout");
  for (const fs::path& entry : list_folder(folders_.git)) {  // what a split index is in, too
    const std::string name = entry.filename().string();
    if (name.starts_with("sharedindex.")) own(name.c_str());
  }
  for (const char* name : {"info/exclude", "info/attributes", "info/grafts", "shallow"}) {
    shared(name);
  }
  shared("packed-refs");
  copy_references(references);
}

void GitRepository::copy_references(References references) {
  const fs::path& to = scratch_.path();
  const Fd git = open_folder(folders_.git);
  const Fd common = open_folder(folders_.common);
  if (references == References::all) {
    for (const char* name : {"refs", "logs"}) {
      copy_tree(folders_.common, name, to);
      if (folders_.git != folders_.common) copy_tree(folders_.git, name, to);
    }
    for (const char* name : {"ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD"}) {
      copy_beneath(git.get(), name, to / name, kMostReferences);
    }
    return;
  }
  constexpr int kLongestChain = 5;
  std::string name = named_ref_in(read_file(to / "HEAD"));
  for (int i = 0; i < kLongestChain && !name.empty(); ++i) {
    const bool found = copy_beneath(git.get(), name, to / name, kMostReferences) ||
                       copy_beneath(common.get(), name, to / name, kMostReferences);
    name = found ? named_ref_in(read_file(to / name)) : "";
  }
}

void GitRepository::write_settings() const {
  std::vector<std::pair<std::string, std::string>> values = own_git_settings().values;
  const auto take = [&](const GitConfig& config) {
    for (const auto& [key, value] : config.values) {
      if ((contains(kPlainSettings, key) && is_value(value)) || is_branch_setting(key, value)) {
        values.emplace_back(key, value);
      }
    }
  };
  const GitConfig config = read_git_config(folders_.common, "config");
  take(config);
  if (config.last("extensions.worktreeconfig") == "true") {
    take(read_git_config(folders_.git, "config.worktree"));
  }
  std::string text = "[core]\n\trepositoryformatversion = 1\n";
  for (const auto& [key, value] : values) {
    const std::size_t first = key.find('.');
    const std::size_t last = key.rfind('.');
    const std::string section =
        first == last
            ? key.substr(0, first)
            : key.substr(0, first) + " " + quoted_value(key.substr(first + 1, last - first - 1));
    text += fmt::format("[{}]\n\t{} = {}\n", section, key.substr(last + 1), quoted_value(value));
  }
  text +=
      "[core]\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n"
      "\thooksPath = /dev/null\n[gc]\n\tauto = 0\n[submodule]\n\trecurse = false\n";
  write_file(scratch_.path() / "config", text, /*durable=*/false);
}

std::string GitRepository::ask(const std::vector<std::string>& words,
                               std::string_view input) const {
  return ask_in(folders_.top, project_, words, input);
}

std::string GitRepository::ask_in(const fs::path& top, const fs::path& folder,
                                  const std::vector<std::string>& words,
                                  std::string_view input) const {
  Command command{Purpose{"git-state"}};
  command.argv = words;
  command.env = quiet_environment(scratch_.path());
  command.env->push_back("GIT_DIR=" + scratch_.path().string());
  command.env->push_back("GIT_WORK_TREE=" + top.string());
  command.env->push_back("GIT_OBJECT_DIRECTORY=" + (folders_.common / "objects").string());
  command.folder = folder;
  Captured answer = run_limited(std::move(command), git_program(), input);
  if (answer.exit.code == 0) return std::move(answer.out);
  const std::string_view first = std::string_view(answer.err).substr(0, answer.err.find('\n'));
  throw NotKnown(fmt::format("git: {}", trim(first)));
}

void GitRepository::trust_times() const {
  constexpr std::time_t kFarAway = 4'000'000'000;  // seconds: in 2096
  const std::array<timespec, 2> times = {timespec{kFarAway, 0}, timespec{kFarAway, 0}};
  (void)::utimensat(AT_FDCWD, index().c_str(), times.data(), 0);
}

bool GitRepository::may_have_submodules() const {
  // As the index has the mode of one, in four bytes (gitformat-index(5)).
  constexpr std::string_view kMode{"\0\0\xE0\0", 4};
  for (const fs::path& entry : list_folder(scratch_.path())) {
    const std::string name = entry.filename().string();
    if (name != "index" && !name.starts_with("sharedindex.")) continue;
    if (read_file(entry).find(kMode) != std::string::npos) return true;
  }
  return false;
}

}  // namespace mlenv
