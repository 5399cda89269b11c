#pragma once
// A container as a draft of a recipe: what its engine says of it, and the records that package
// managers left in its files. Plain files and texts: nobody of it is asked, nothing of it is run.
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "recipes/init/draft.hpp"

namespace mlenv {

/// What was read of a container. `folder` has, at their places below it, its os-release(5), dpkg's
/// `status` and apt's `extended_states`, `pyvenv.cfg`, names in `conda-meta`, and of each
/// `*.dist-info` INSTALLER and direct_url.json. All of it is somebody else's text.
struct ContainerContents {
  std::string shown;  ///< `docker:lab`
  fs::path folder;
  std::vector<std::string> path;                         ///< folders of its PATH, first one first
  std::vector<std::pair<std::string, std::string>> env;  ///< of its image
  std::vector<std::string> withheld;  ///< names of variables: given at its start, or secret
  std::string workdir;
  std::vector<std::string> command;  ///< entrypoint and arguments
  std::vector<std::string> mounts;   ///< places in the container
};

/// Base, Debian packages that somebody asked for, the Python environment that is first in PATH,
/// variables, folder and command. What a recipe cannot say goes to `left_out`. `folder` is where
/// the recipe will lie.
Draft convert_container(const ContainerContents& contents, const fs::path& folder);

/// Names of the packages in dpkg's `status` that somebody asked for: not marked as automatically
/// installed in apt's `extended_states`, none of the base system (Essential, or of priority
/// required, important or standard), and needed by no other of them. Sorted. Throws `too-large` for
/// more than 20,000 packages.
std::vector<std::string> asked_for_packages(std::string_view status,
                                            std::string_view extended_states);

}  // namespace mlenv
