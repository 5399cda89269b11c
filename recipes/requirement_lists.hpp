#pragma once
// What the files that a recipe's `requirements` names ask for, whatever their format: lists of
// PEP 508 texts, each with its place in its file.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "recipes/steering.hpp"

namespace mlenv {

struct RequirementsText {
  fs::path shown_path;
  std::string text;
};
using ListedFile = std::shared_ptr<const RequirementsText>;

struct ListedText {
  std::string text;
  std::shared_ptr<const RequirementsText> file;
  int line = 0;  ///< 1-based
  int column = 0;

  /// `file:line:col: message`, the line and a caret.
  std::string shown(std::string_view message) const;
};

/// What the files promise of one release: a wheel of it must have one of these digests.
struct ListedHashes {
  std::set<std::string> sha256;  ///< hex
  ListedText place;
};

struct RequirementLists {
  /// A package's normalised name and its exact version, as the file has it.
  using Release = std::pair<std::string, std::string>;

  std::vector<ListedText> requirements;  ///< as `Requirement::str` writes them
  std::vector<ListedText> constraints;   ///< count for packages that are needed anyway
  std::vector<ListedText> pythons;       ///< `requires-python`: specifiers, `>=3.10`
  std::map<Release, ListedHashes> hashes;
  /// Lines that say where packages are looked for, as uv reads them in such a file: `--find-links
  /// file:///…`; each once, as uv takes some. No lock holds them.
  std::vector<std::string> indexes;
  std::optional<ListedText> all_hashed;  ///< `--require-hashes`: no package without a hash
  Steering steering;  ///< of options and `[tool.uv]`, the first file's before the others'
  std::vector<ListedText> notes;  ///< what of a file does not count here, as a sentence

  void add_index(std::string line);
  void add_hashes(const Release& release, const std::set<std::string>& sha256,
                  const ListedText& place);

  // As a lock keeps them (Request): sorted, unique.
  std::vector<std::string> requirement_texts() const;
  std::vector<std::string> constraint_texts() const;  ///< with `Python >=3.10`
  std::optional<Digest> hashes_digest() const;
};

}  // namespace mlenv
