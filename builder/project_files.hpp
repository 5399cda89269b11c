#pragma once
// `files:` of a recipe as found on the disk: what is copied into the image, in a form that depends
// on names, contents, links and who may execute, and on nothing else of this machine.
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/pool.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {

struct ProjectFile {
  enum class Kind { file, folder, symlink };
  Kind kind = Kind::file;
  std::string path;   ///< relative to the image's root
  std::string shown;  ///< relative to the recipe's folder, for messages
  fs::path from;      ///< on this machine
  std::uint64_t size_bytes = 0;
  bool executable = false;        ///< by its owner
  std::string link;               ///< of a symlink, as it is
  std::optional<Digest> content;  ///< of a file
};

/// What shares a layer.
struct FilesPart {
  std::string title;               ///< `project files at /workspace`
  std::vector<ProjectFile> files;  ///< sorted by path; missing parents are not listed
  Digest digest;                   ///< of all that matters in `files`
};

struct ProjectFiles {
  std::vector<FilesPart> parts;      ///< no path is in two of them, but folders may be
  std::optional<Digest> digest;      ///< of the parts; nullopt where the recipe has no `files`
  std::vector<std::string> secrets;  ///< left out for their names; sorted
  std::string ignore_file;           ///< where the project says what to leave out
};

/// Sources with at least this much are a layer each, so that a change elsewhere leaves them alone;
/// the others share one. Where that gave more than kOwnFilesLayers, the bound is doubled until not.
inline constexpr std::uint64_t kOwnFilesBytes = std::uint64_t{4} << 20;
inline constexpr std::size_t kOwnFilesLayers = 4;

/// What is wrong before anything is read: throws the recipe's error, with its place, for a source
/// that does not exist or leads out of the recipe's folder, and `ignore-invalid`.
void require_files(const Recipe& recipe);

/// Where a file or folder at `path`, which need not exist yet, lies in the recipe's folder
/// (relative to it; `.` is that folder) when `files` copies it; nullopt when it does not. What a
/// build itself writes must not lie there, or each build would hold the one before. Throws
/// `ignore-invalid`.
std::optional<std::string> copied_place(const Recipe& recipe, const fs::path& path);

/// Reads and hashes all of it in the pool's threads. Symbolic links are kept; one that leads out of
/// what is copied with it is an error, as are sockets, pipes and devices (`bad-file`). Throws the
/// recipe's error for a source that is left out altogether and for two that meet at one path,
/// `ignore-invalid`, and `file-changed` for a file that is being written.
ProjectFiles collect_files(const Recipe& recipe, Pool& pool);

/// A file's bytes, as `collect_files` found them, to `sink`. Throws `file-changed` when they are
/// not.
void copy_file(const ProjectFile& file, Sink& sink);

}  // namespace mlenv
