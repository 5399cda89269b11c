#pragma once
// Questions to git about somebody's repository, which they leave as it is: nothing is fetched,
// nothing is written to it, and no program runs that the repository itself names.
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/process.hpp"

namespace mlenv {

/// Why git does not say something, in its own first words; translated by whoever asked.
class NotKnown : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class GitRepository {
 public:
  /// Of a folder in it, which must outlive this. `index`: a file in place of the repository's own
  /// index.
  explicit GitRepository(const fs::path& project, const std::optional<fs::path>& index = {});

  /// `git WORDS…` in that folder. Throws NotKnown with git's own first words.
  std::string ask(const std::vector<std::string>& words) const;

 private:
  Captured said(const std::vector<std::string>& words) const;

  const fs::path& project_;
  std::vector<std::string> environment_;
  std::vector<std::string> settings_;
};

}  // namespace mlenv
