#pragma once
// Whether an image runs here, asked before a run starts and remembered while the host stays as it
// is: a run that passed once asks a handful of files.
#include <string>

#include "cli/ui.hpp"
#include "images/inspect/image_facts.hpp"
#include "images/oci.hpp"
#include "recipes/lock.hpp"
#include "runner/cdi/gpus.hpp"

namespace mlenv::cli {

struct JudgedRun {
  std::string name;  ///< as the person called the image
  GpuChoice gpus;
  bool with_gpus = false;
};

/// Throws `does-not-run` (no) where a finding blocks: needed, found and what to do. Rules about
/// GPUs count only with GPUs: without, the image's frameworks use the processor. The image's facts
/// are those that are remembered; for one that was built here and gets no GPUs those of its lock;
/// else its files are read, once. The host's are probed as far as rules that block ask for them.
/// What cannot be found out blocks nothing. Returns what forward_libraries() says: what
/// LocalRun::first_libraries is to be.
std::string require_verdict(Ui& ui, const Image& image, const JudgedRun& run);

/// What an image is judged by: with GPUs its files, read once; without, the lock's word is enough
/// for one that was built here.
ImageFacts facts_to_judge(Ui& ui, const Image& image, bool with_gpus);

/// Whether a build put it into this store, whatever the image says of itself: one that was pulled
/// or loaded is none unless its bytes are the same.
bool is_built_here(const Store& store, const Image& image);

/// Notes in the store what the lock of an image tells of it. Costs nothing where it is noted.
void remember_built_facts(Store& store, const Image& image, const Lock& lock);

/// One line where the image of a build that has ended does not run here, or may fail.
void say_verdict(Ui& ui, const Image& image, const std::string& recipe);

}  // namespace mlenv::cli
