#pragma once
// The bare host: programs of an image without a container. The very same bytes are run, so that
// what differs is the container and not the build: all files of the image stand in one folder (hard
// links to the store's, which can only be read), and a program there is started by the image's own
// loader with the image's own libraries. No control group, no filter, and the host's files beside
// it.
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "images/oci.hpp"
#include "images/stacked_trees.hpp"

namespace mlenv::compare {

class BareImage {
 public:
  /// Fills the empty folder `root`; with links it must be on the store's file system, and what is
  /// started may not write there (shield).
  BareImage(const std::vector<fs::path>& trees, ImageConfig config, fs::path root, Filled how);

  /// What starts `argv` as the image's PATH finds it, in `folder`. Throws `cannot-start` for what
  /// is not in the image, and for what cannot be started without a container of it.
  Command command(const std::vector<std::string>& argv, const fs::path& folder) const;

  /// Where all of its files are.
  const fs::path& root() const { return root_; }

 private:
  void find_libraries();
  std::vector<std::string> environment() const;
  std::vector<std::string> words_for(const std::string& program, const std::string& shown,
                                     int depth) const;

  StackedTrees files_;
  ImageConfig config_;
  fs::path root_;
  std::string libraries_;              ///< folders, with colons
  std::optional<std::string> python_;  ///< the image's, where links lead to
  std::vector<std::string> site_packages_;
};

/// `#!/usr/bin/env python3` → `/usr/bin/env`, `python3`; empty for another beginning.
std::vector<std::string> words_of_script(std::string_view beginning);

}  // namespace mlenv::compare
