#include "runner/record/code_state.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <stdexcept>

#include <fmt/core.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/files_beneath.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/record/git_lfs.hpp"
#include "runner/record/git_repository.hpp"
#include "runner/record/git_status.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostNames = 1000;
constexpr std::uint64_t kMostCodeRead = std::uint64_t{256} << 20U;

/// Digests of files, as long as their sum stays in bounds.
class ChangedFiles {
 public:
  explicit ChangedFiles(fs::path top) : top_(std::move(top)), folder_(open_folder(top_)) {}

  /// The digest's line for a file. Throws when it cannot be had.
  std::string line(const std::string& name) {
    const fs::path path = top_ / name;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return "gone " + name;
      throw NotKnown(fmt::format("`{}` cannot be read", name));
    }
    if (S_ISLNK(status.st_mode)) {
      return fmt::format("{} link {}", Digest::of(fs::read_symlink(path).string()).hex(), name);
    }
    if (!S_ISREG(status.st_mode)) {
      throw NotKnown(fmt::format("`{}` is a repository of its own, or no file", name));
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size > kMostCodeRead - read_) {
      throw NotKnown(fmt::format("the changed files hold more than 256 MB, `{}` among them", name));
    }
    read_ += size;
    const bool executable = (status.st_mode & S_IXUSR) != 0;
    return fmt::format("{} {} {}", digest_of(name, size), executable ? "program" : "file", name);
  }

 private:
  std::string digest_of(const std::string& name, std::uint64_t size) const {
    const Fd fd = open_file_beneath(folder_.get(), name);
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) != size) {
      throw NotKnown(fmt::format("`{}` changed while it was read", name));
    }
    SliceSource source{fd.get(), 0, size};
    Sha256 hash;
    copy(source, hash);
    return hash.finish().hex();
  }

  fs::path top_;
  Fd folder_;
  std::uint64_t read_ = 0;
};

Text changes_digest(const fs::path& top, const std::vector<std::string>& names) {
  try {
    ChangedFiles files{top};
    std::string lines;
    for (const std::string& name : names) lines += files.line(name) + '\n';
    return known(Digest::of(lines).str(), "the files");
  } catch (const std::exception& error) {
    return unknown<std::string>(error.what());
  }
}

/// A commit's whole name, and nothing that git would take for an option.
bool is_commit(std::string_view text) {
  constexpr std::size_t kSha1 = 40;
  constexpr std::size_t kSha256 = 64;
  return (text.size() == kSha1 || text.size() == kSha256) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

CodeState unknown_code(const std::string& why) {
  return {unknown<std::string>(why), unknown<std::string>(why),
          unknown<std::vector<std::string>>(why), unknown<std::string>(why)};
}

/// Of files that Git LFS keeps, the content: as a checkout has it where the person's settings say
/// so.
void fill_lfs_files(const GitRepository& repository, const fs::path& folder,
                    std::uint64_t most_bytes) {
  if (!own_git_settings().lfs) return;
  const std::map<std::string, LfsPointer> pointers = lfs_pointers(folder);
  if (pointers.empty()) return;
  std::string names;
  for (const auto& [name, pointer] : pointers) names += name + '\0';
  const std::string answer =
      repository.ask_in(folder, folder, {"check-attr", "-z", "--stdin", "filter"}, names);
  const std::vector<std::string_view> parts = split(answer, '\0');
  for (std::size_t i = 0; i + 2 < parts.size(); i += 3) {
    if (parts[i + 2] != "lfs") continue;
    const auto found = pointers.find(std::string(parts[i]));
    if (found == pointers.end()) continue;
    if (found->second.size_bytes > most_bytes) throw NotKnown("its files of LFS are too large");
    most_bytes -= found->second.size_bytes;
    fill_lfs_file(folder, found->first, found->second, repository.folders().common / "lfs/objects");
  }
}

}  // namespace

CodeState code_state(const fs::path& project, const std::vector<std::string>& without) {
  if (!find_program("git")) return unknown_code("git is not on PATH");
  CodeState code;
  try {
    const GitRepository repository{project};
    const auto fact = [&](const char* source, const std::vector<std::string>& words) -> Text {
      try {
        return known(std::string(first_line(repository.ask(words))), source);
      } catch (const std::exception& error) {
        return unknown<std::string>(error.what());
      }
    };
    code.commit = fact("git rev-parse HEAD", {"rev-parse", "--verify", "-q", "HEAD"});
    if (!code.commit) code.commit.source = "the repository has no commit";
    code.branch = fact("git symbolic-ref HEAD", {"symbolic-ref", "--short", "-q", "HEAD"});
    if (!code.branch) code.branch.source = "no branch is checked out";
    const std::vector<std::string> names = changed_files(repository, without);
    code.changed = names.size() <= kMostNames ? known(names, "git status")
                                              : unknown<std::vector<std::string>>(fmt::format(
                                                    "{} files, too many to name", names.size()));
    code.changed_digest = changes_digest(repository.folders().top, names);
  } catch (const std::exception& error) {
    const std::string why = error.what();
    if (code.commit.source.empty()) return unknown_code(why);
    code.changed = unknown<std::vector<std::string>>(why);
    code.changed_digest = unknown<std::string>(why);
  }
  return code;
}

Texts files_between(const fs::path& project, const std::string& from, const std::string& to) {
  using Names = std::vector<std::string>;
  if (!is_commit(from) || !is_commit(to)) return unknown<Names>("it is not the name of a commit");
  if (!find_program("git")) return unknown<Names>("git is not on PATH");
  try {
    const std::string answer =
        GitRepository{project}.ask({"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff",
                                    "--no-textconv", "--ignore-submodules", from, to, "--", "."});
    Names names;
    for (const std::string_view name : split(answer, '\0')) {
      if (!name.empty()) names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return known(std::move(names), "git diff");
  } catch (const std::exception& error) {
    return unknown<Names>(error.what());
  }
}

fs::path export_commit(const fs::path& project, const std::string& commit, const fs::path& folder,
                       std::uint64_t most_bytes) {
  try {
    const GitRepository repository{project};
    require_own(repository.folders());
    const fs::path place = fs::canonical(project).lexically_relative(repository.folders().top);
    fs::path written = place == "." ? folder : folder / place;
    make_folders(written);
    // All of it, for the attributes that lie above the project; of that the project is written.
    repository.ask_in(folder, written, {"read-tree", "--no-sparse-checkout", commit});
    repository.ask_in(folder, written, {"checkout-index", "--all"});
    fill_lfs_files(repository, folder, most_bytes);
    return written;
  } catch (const NotKnown& error) {
    throw failure("no-commit", "the code of commit {} cannot be taken from `{}`", commit,
                  project.string())
        .because(error.what())
        .hint("fetch that commit (`git fetch`)");
  }
}

}  // namespace mlenv
