#pragma once
// Questions to git about somebody's repository, which a container may have written to.
//
// git runs programs that settings name: filters, hooks, monitors, helpers, and those of submodules
// too. So it never sees the repository's folder. It is given one that mlenv makes for the question:
// copies of index, references and ignore files, settings that are values alone (line endings, file
// modes, the hash), and the repository's objects, which are content. Of the person's own settings
// it gets such values, too. Nothing is fetched, nothing is written to the repository, no hook and
// no filter runs, no link in the repository's folder is followed.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/process.hpp"
#include "base/scratch_folder.hpp"
#include "runner/record/git_folders.hpp"

namespace mlenv {

/// What the person's and the machine's settings say, as git itself reads them (`git config`).
struct OwnGitSettings {
  std::vector<std::pair<std::string, std::string>> values;  ///< those that are passed on
  std::vector<std::string> safe_folders;                    ///< `safe.directory`
  /// Filters by name, of which mlenv knows what they do: `lfs` where files are to have content.
  bool lfs = false;
};
const OwnGitSettings& own_git_settings();

class GitRepository {
 public:
  /// What of the references is read: those that HEAD needs, or all, with their histories.
  enum class References { head, all };

  /// Of a folder in it. Throws NotKnown where there is none, where it belongs to another user (as
  /// git has it, but for folders in the person's `safe.directory`), and for what find_git_folders()
  /// refuses.
  explicit GitRepository(const fs::path& project, References references = References::head);

  /// `git WORDS…` in that folder. Throws NotKnown with git's own first words. `input` goes to its
  /// standard input.
  std::string ask(const std::vector<std::string>& words, std::string_view input = {}) const;
  /// The same in `folder` as a work tree, such as one to write files into.
  std::string ask_in(const fs::path& top, const fs::path& folder,
                     const std::vector<std::string>& words, std::string_view input = {}) const;

  const GitFolders& folders() const { return folders_; }
  /// Where the copy of the index lies, or would.
  fs::path index() const { return scratch_.path() / "index"; }
  /// Lets git take files for unchanged by what the index knows of size and time alone.
  void trust_times() const;
  /// Whether something in the index may be a commit of another repository.
  bool may_have_submodules() const;

 private:
  void copy_files(References references);
  void copy_references(References references);
  void write_settings() const;

  GitFolders folders_;
  fs::path project_;
  ScratchFolder scratch_;
};

}  // namespace mlenv
