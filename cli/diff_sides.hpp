#pragma once
// What `diff` compares: a lock, a recipe's lock, or an image of the store or of a run.
#include <optional>
#include <string>
#include <string_view>

#include "cli/ui.hpp"
#include "images/image_diff.hpp"
#include "recipes/environment.hpp"
#include "recipes/lock_set.hpp"

namespace mlenv::cli {

/// The image of a run that was handed over with what it had installed.
struct RecordedSide {
  Digest image;
  Environment installed;
};

struct Side {
  std::string name;            ///< as it was given
  std::optional<Lock> lock;    ///< of a lock file or recipe: that of the platform to compare
  std::optional<Image> image;  ///< else, but for `recorded`
  LockSet locks{};             ///< of a lock file or recipe: all that it holds
  std::optional<RecordedSide> recorded{};
  std::string platform() const;
  Digest digest() const;
  std::string_view kind() const { return lock ? "lock" : "image"; }
};

/// A path that ends in `.yaml` or `.yml` means the lock beside that recipe, one that ends in
/// `.lock` a lock; else what the store has by that name or digest, else a lock file. Throws what
/// reading them throws, `no-lock` (usage) for a recipe without a lock, `absent`, and what
/// `image_named` does.
Side side_named(Ui& ui, const std::string& argument);

/// Makes both sides those of the platform `asked` for; where it is empty, of an image's platform,
/// of this machine's, or of the first that both have. Throws `no-platform` (usage) for one that a
/// lock is not for.
void choose_platform_of(Side& from, Side& to, const std::string& asked);

struct SideComparison {
  EnvironmentDiff packages;        ///< with the values of two locks
  std::optional<ImageDiff> image;  ///< of two images
  std::optional<Fetch> fetch;      ///< of two locks
  bool same = false;
};

/// Throws `other-platform` (usage) for sides that are for different machines.
SideComparison compare(Ui& ui, const Side& from, const Side& to);

}  // namespace mlenv::cli
