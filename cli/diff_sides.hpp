#pragma once
// What `diff` compares: a lock, a recipe's lock, or an image of the store.
#include <optional>
#include <string>
#include <string_view>

#include "cli/ui.hpp"
#include "images/image_diff.hpp"
#include "recipes/environment.hpp"

namespace mlenv::cli {

struct Side {
  std::string name;            ///< as it was given
  std::optional<Lock> lock;    ///< of a lock file or recipe
  std::optional<Image> image;  ///< else
  std::string platform() const;
  Digest digest() const;
  std::string_view kind() const { return lock ? "lock" : "image"; }
};

/// A path that ends in `.yaml` or `.yml` means the lock beside that recipe, one that ends in
/// `.lock` a lock; else what the store has by that name or digest, else a lock file. Throws what
/// reading them throws, `no-lock` (usage) for a recipe without a lock, `absent`, and what
/// `image_named` does.
Side side_named(Ui& ui, const std::string& argument);

struct Comparison {
  EnvironmentDiff packages;        ///< with the values of two locks
  std::optional<ImageDiff> image;  ///< of two images
  std::optional<Fetch> fetch;      ///< of two locks
  bool same = false;
};

/// Throws `other-platform` (usage) for sides that are for different machines.
Comparison compare(Ui& ui, const Side& from, const Side& to);

}  // namespace mlenv::cli
