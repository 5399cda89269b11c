#pragma once
// `--pull-from`: nodes fetch an image's layers from a registry themselves (docs/distribution.md).
#include <string>

#include "cli/command_tree.hpp"
#include "cli/ui.hpp"
#include "images/oci.hpp"
#include "runner/job/registry_grants.hpp"

namespace mlenv::cli {

struct PullFromWords {
  std::string reference;  ///< `HOST/REPOSITORY[:TAG|@DIGEST]`; empty: not said
  bool plain_http = false;
};

void add_pull_from(CLI::App& app, std::string& reference);

/// Where nodes fetch `image`: makes sure that it is there, what the reference means, and that its
/// registry gives what others can fetch it with. Nothing said is nothing. Throws `other-image`,
/// `not-found`, `password-only`, `no-registry` and `bad-pull-from` (usage), and what Registry does.
job::PullFrom pull_from_of(Ui& ui, const PullFromWords& words, const Image& image);

/// Of an image that the store lacks: its manifest and config alone, from there; it gets no name.
Image image_without_layers(Ui& ui, const PullFromWords& words, const std::string& platform);

/// What `mlenv` asks of itself: a token for nodes (registry_grants.hpp).
Action declare_registry_grant(CLI::App& app);

}  // namespace mlenv::cli
