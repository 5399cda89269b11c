#pragma once
// One `run` step: its command in the sandbox on top of the layers below it, what it changed as a
// layer.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/pool.hpp"
#include "base/progress.hpp"
#include "builder/run/image_owners.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// What a build's steps need from outside.
struct RunOptions {
  std::map<std::string, std::string> secrets;  ///< id → content
  /// By step: where it stands in the recipe, for messages; may be shorter.
  std::vector<std::string> places;
  /// Makes the machine's network settings usable in an image: writes files into `root` (a folder
  /// with what of the image matters) and into `folder`, which the step sees at `lent_at`. Returns
  /// variables, `K=V`.
  std::function<std::vector<std::string>(const fs::path& root, const fs::path& folder)> lend;
  std::string lent_at;
  /// Blobs of an earlier build of the same lock and files, lowest first; empty: none is known.
  std::vector<Digest> recorded;
  /// One of those layers in the store, or brought there; nullopt when it cannot be had.
  std::function<std::optional<Layer>(const Digest&)> find;
};

struct RunJob {
  const RunStep& step;
  std::size_t number = 0;  ///< from 0
  const std::vector<Layer>& below;
  const ImageOwners& owners;     ///< of `below`
  std::vector<std::string> env;  ///< of the image
  std::string workdir;
  std::int64_t epoch = 0;
  const RunOptions& options;
};

/// The unpacked trees of `layers`, in their order; of equal ones the topmost alone, which says all
/// that the others say.
std::vector<fs::path> layer_trees(const std::vector<Layer>& layers, Store& store, Pool& pool,
                                  Progress& progress);

/// `run: make -C /workspace/ext`: the first line, cut.
std::string run_title(const RunStep& step);

/// Key of a step's layer: what it sees, and what it is told to do with it. Contents of secrets are
/// no part of it.
Digest run_key(const RunJob& job);

/// Throws `no-secret` (usage) for one that the step wants and nobody gave.
void require_secrets(const RunStep& step, std::size_t number, const RunOptions& options);

/// Executes it. Unpacks the layers below; the new layer is in the store, not unpacked. Throws
/// `step-failed` with the last lines of its output, `secret-stored`, `no-secret`, and as the
/// sandbox does.
Layer run_step(const RunJob& job, Store& store, Pool& pool, Progress& progress);

}  // namespace mlenv
