#include "recipes/resolve/git_source.hpp"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "base/scratch_folder.hpp"
#include "recipes/resolve/git_program.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::minutes kAskDeadline{2};
constexpr std::chrono::minutes kFetchDeadline{60};
constexpr std::chrono::hours kAbandoned{24};

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}
bool is_full_commit(std::string_view text) { return text.size() == 40 && is_hex(text); }

Error no_commit(const std::string& url, const std::string& what) {
  return failure("no-commit", "`{}` has no {}", display_url(url), what);
}

/// A repository of one fetch, gone with the object.
class Scratch {
 public:
  explicit Scratch(std::string url)
      : url_(std::move(url)), folder_(std::in_place_type<ScratchFolder>) {
    begin();
  }
  /// From where its files can be moved into `parent`.
  Scratch(std::string url, const fs::path& parent)
      : url_(std::move(url)), folder_(std::in_place_type<TemporaryFolder>, parent) {
    begin();
  }

  /// False: the server gives no single commits, or has none of that name.
  bool fetch_one(const std::string& commit) const {
    return run_git(with({"fetch", "--quiet", "--no-tags", "--depth=1", "--", url_, commit}),
                   kFetchDeadline)
               .exit.code == 0;
  }
  void fetch_all() const {
    require(run_git(with({"fetch", "--quiet", "--no-tags", "--", url_, "+refs/heads/*:refs/heads/*",
                          "+refs/tags/*:refs/tags/*"}),
                    kFetchDeadline));
  }
  /// Commits and tags.
  void fetch_history(const std::string& commit) const {
    const Captured said = run_git(with({"fetch", "--quiet", "--tags", "--filter=tree:0", "--", url_,
                                        "+refs/heads/*:refs/heads/*", commit}),
                                  kFetchDeadline);
    if (said.exit.code != 0) fetch_all();
  }
  /// Empty: no tag.
  std::string describe(const std::string& commit) const {
    const Captured said =
        run_git(with({"describe", "--tags", "--long", "--abbrev=7", "--match", "*[0-9]*", commit}),
                kAskDeadline);
    return said.exit.code == 0 ? std::string(trim(said.out)) : std::string{};
  }
  /// nullopt: there is no such commit.
  std::optional<std::string> commit(const std::string& name) const {
    const Captured said =
        run_git(with({"rev-parse", "--quiet", "--verify", "--end-of-options", name + "^{commit}"}),
                kAskDeadline);
    std::string found(trim(said.out));
    if (said.exit.code != 0 || !is_full_commit(found)) return std::nullopt;
    return found;
  }
  std::string entries(const std::string& commit) const {
    const Captured said =
        run_git(with({"ls-tree", "-r", "-z", "--full-tree", commit}), kAskDeadline);
    require(said);
    return said.out;
  }
  /// The contents of these objects, one behind the other, each behind a line about it.
  void contents(const fs::path& names, const fs::path& to) const {
    const Fd in = open_file(names);
    const Fd out = open_file(to, O_WRONLY | O_CREAT | O_TRUNC);
    if (run_git(with({"cat-file", "--batch"}), in.get(), out.get(), kFetchDeadline).code != 0) {
      throw failure("git-failed", "the files of `{}` cannot be read", display_url(url_));
    }
  }
  const fs::path& folder() const {
    return std::visit([](const auto& one) -> const fs::path& { return one.path(); }, folder_);
  }

 private:
  void begin() const {
    require(run_git({"init", "--quiet", "--bare", "--template=", path()}, kAskDeadline));
  }
  std::string path() const { return (folder() / "git").string(); }
  std::vector<std::string> with(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "--git-dir=" + path());
    return arguments;
  }
  void require(const Captured& said) const {
    if (said.exit.code != 0) throw git_error(url_, said);
  }

  std::string url_;
  std::variant<ScratchFolder, TemporaryFolder> folder_;
};

/// `refs/heads/main` → commit, of what matches one of `patterns`.
std::map<std::string, std::string> references(const std::string& url,
                                              const std::vector<std::string>& patterns) {
  std::vector<std::string> arguments = {"ls-remote", "--quiet", "--", url};
  arguments.insert(arguments.end(), patterns.begin(), patterns.end());
  const Captured said = run_git(arguments, kAskDeadline);
  if (said.exit.code != 0) throw git_error(url, said);
  std::map<std::string, std::string> found;
  for (const std::string_view line : split(said.out, '\n')) {
    const std::size_t tab = line.find('\t');
    if (tab == 40) found.emplace(line.substr(tab + 1), line.substr(0, tab));
  }
  return found;
}

std::string near_reference(const std::string& url, const std::string& reference) {
  std::vector<std::string> names;
  for (const auto& [name, commit] : references(url, {"refs/heads/*", "refs/tags/*"})) {
    names.push_back(name.substr(name.find('/', 5) + 1));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return suggestion(reference, views);
}

struct Entry {
  std::string mode;
  std::string object;
  std::string path;
};

/// `100644 blob OBJECT\tPATH` and NUL. Only what can be laid out below a folder.
std::vector<Entry> parse_entries(const std::string& text, const std::string& url) {
  std::vector<Entry> entries;
  for (const std::string_view line : split(text, '\0')) {
    if (line.empty()) continue;
    const std::size_t tab = line.find('\t');
    const std::vector<std::string_view> words = split(line.substr(0, tab), ' ');
    Entry entry;
    if (tab != std::string_view::npos && words.size() == 3) {
      entry = {std::string(words[0]), std::string(words[2]), std::string(line.substr(tab + 1))};
    }
    if (entry.mode == "160000") {
      throw failure("bad-source", "`{}` has the submodule `{}`, which is another repository",
                    display_url(url), entry.path)
          .hint(
              "name a commit without submodules, or put a wheel or an sdist of it beside the "
              "recipe: `NAME @ ./dist/FILE`");
    }
    const bool known = entry.mode == "100644" || entry.mode == "100755" || entry.mode == "120000" ||
                       entry.mode == "100664";
    if (!known || !is_full_commit(entry.object) || !is_clean_relative_path(entry.path)) {
      throw failure("bad-source", "`{}` holds `{}`, which is no plain file", display_url(url),
                    entry.path);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// Contents that `git cat-file --batch` wrote, taken in order.
class Contents {
 public:
  explicit Contents(const fs::path& path) : fd_(open_file(path)) {}

  void next(const Entry& entry, Sink& sink) {
    const std::string line = header();
    const std::string expected = entry.object + " blob ";
    std::uint64_t size = 0;
    const char* const end = line.data() + line.size();
    const bool good = line.starts_with(expected) &&
                      std::from_chars(line.data() + expected.size(), end, size).ptr == end;
    if (!good) throw failure("git-failed", "git does not give `{}`", entry.path);
    SliceSource data{fd_.get(), at_, size};
    copy(data, sink);
    at_ += size + 1;
  }

 private:
  /// Up to the line's end, which is passed.
  std::string header() {
    constexpr std::uint64_t kLongest = 80;
    SliceSource source{fd_.get(), at_, std::min(kLongest, left())};
    std::string line = read_all(source, kLongest);
    line.resize(std::min(line.find('\n'), line.size()));
    at_ += line.size() + 1;
    return line;
  }
  std::uint64_t left() const {
    const std::uint64_t size = static_cast<std::uint64_t>(::lseek(fd_.get(), 0, SEEK_END));
    return size > at_ ? size - at_ : 0;
  }

  Fd fd_;
  std::uint64_t at_ = 0;
};

void lay_out(const Scratch& scratch, const std::vector<Entry>& entries, const fs::path& to) {
  std::string names;
  for (const Entry& entry : entries) names += entry.object + '\n';
  write_file(scratch.folder() / "names", names, /*durable=*/false);
  scratch.contents(scratch.folder() / "names", scratch.folder() / "contents");
  Contents contents(scratch.folder() / "contents");
  make_folders(to);
  std::vector<std::pair<fs::path, std::string>> links;
  for (const Entry& entry : entries) {
    const fs::path target = to / entry.path;
    make_folders(target.parent_path());
    if (entry.mode == "120000") {
      StringSink link;
      contents.next(entry, link);
      links.emplace_back(target, std::move(link.text));
      continue;
    }
    const mode_t mode = entry.mode == "100755" ? 0755 : 0644;
    const Fd out = open_file(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    FdSink sink{out.get()};
    contents.next(entry, sink);
    if (::fchmod(out.get(), mode) != 0) throw os_error(errno, "cannot write `{}`", target.string());
  }
  // Last, so that nothing is written through one.
  for (const auto& [path, link] : links) fs::create_symlink(link, path);
}

/// What a killed process left.
void sweep(const fs::path& folder) {
  for (const fs::path& one : list_folder(folder)) {
    std::error_code unknown;
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(one, unknown);
    const bool is_ours = has_temporary_name(one.filename().string(), "tmp-") && is_own_folder(one);
    if (!unknown && is_ours && age > kAbandoned) {
      remove_tree(one);
    }
  }
}

/// The cached tree where it is whole; nullopt: to be fetched. Called while nobody replaces it.
std::optional<SourceTree> cached_tree(const fs::path& place, const fs::path& record,
                                      const std::optional<Digest>& expected) {
  if (!fs::is_directory(fs::symlink_status(place))) return std::nullopt;
  try {
    SourceTree tree = read_source_tree(place);
    const Digest found = tree.digest();
    // What a crash left half on the disk is not what was recorded.
    const bool whole = read_file_if_exists(record) == found.hex();
    if (expected ? found == *expected : whole) return tree;
  } catch (const Error& error) {
    log::debug("{}: {}", place.string(), error.what());
  }
  return std::nullopt;
}

/// Puts the tree in its place in one step, so that whoever reads what was there misses no file;
/// that is gone afterwards.
void put_in_place(const fs::path& tree, const fs::path& place) {
  if (::rename(tree.c_str(), place.c_str()) == 0) return;
  if (::renameat2(AT_FDCWD, tree.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) return;
  remove_tree(place);  // of a file system without such an exchange
  if (::rename(tree.c_str(), place.c_str()) != 0) {
    throw os_error(errno, "cannot write `{}`", place.string());
  }
}

}  // namespace

std::string find_git_commit(const std::string& url, const std::string& reference,
                            Progress& progress) {
  if (is_full_commit(reference)) return reference;
  const Activity activity(progress, "asking " + display_url(url), 0, "");
  if (reference.empty()) {
    const auto found = references(url, {"HEAD"});
    if (const auto head = found.find("HEAD"); head != found.end()) return head->second;
    throw no_commit(url, "default branch").hint("name a branch, tag or commit, as in `@main`");
  }
  const std::vector<std::string> names = {"refs/heads/" + reference,
                                          "refs/tags/" + reference + "^{}",
                                          "refs/tags/" + reference, reference};
  const auto found = references(url, names);
  for (const std::string& name : names) {
    if (const auto one = found.find(name); one != found.end()) return one->second;
  }
  if (reference.size() >= 7 && reference.size() < 40 && is_hex(reference)) {
    const Scratch scratch(url);
    scratch.fetch_all();
    if (const auto commit = scratch.commit(reference)) return *commit;
  }
  throw no_commit(
      url, fmt::format("branch, tag or commit `{}`{}", reference, near_reference(url, reference)));
}

SourceTree provide_git_tree(const std::string& url, const std::string& commit,
                            const std::optional<Digest>& expected, const fs::path& cache,
                            Progress& progress) {
  const fs::path home = cache / "git";
  const fs::path place = home / Digest::of(fmt::format("{}\n{}\n", url, commit)).hex();
  const fs::path record = place.string() + ".tree";
  const fs::path lock = place.string() + ".lock";
  make_own_folders(home);
  {
    const FileLock reading = FileLock::wait(lock, FileLock::Mode::shared);
    if (auto tree = cached_tree(place, record, expected)) return *std::move(tree);
  }
  const FileLock replacing = FileLock::wait(lock, FileLock::Mode::exclusive);
  if (auto tree = cached_tree(place, record, expected)) return *std::move(tree);
  const Activity activity(progress, "fetch " + display_url(url), 0, "");
  sweep(home);
  const Scratch scratch(url, home);
  if (!scratch.fetch_one(commit)) scratch.fetch_all();
  if (!scratch.commit(commit)) {
    throw no_commit(url, fmt::format("commit {}", commit))
        .hint("it may have been removed since: `mlenv lock --upgrade NAME` takes a newer one");
  }
  const std::vector<Entry> entries = parse_entries(scratch.entries(commit), url);
  lay_out(scratch, entries, scratch.folder() / "tree");
  write_file(record, read_source_tree(scratch.folder() / "tree").digest().hex(), /*durable=*/false);
  put_in_place(scratch.folder() / "tree", place);
  return read_source_tree(place);
}

std::string describe_git_commit(const std::string& url, const std::string& commit,
                                Progress& progress) {
  const Activity activity(progress, "fetch tags of " + display_url(url), 0, "");
  const Scratch scratch(url);
  scratch.fetch_history(commit);
  return scratch.describe(commit);
}

}  // namespace mlenv
