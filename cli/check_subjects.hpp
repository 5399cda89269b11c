#pragma once
// What `check` judges: subjects (images, locks, recipes, files of facts) on hosts.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "recipes/lock_set.hpp"
#include "recipes/recipe.hpp"
#include "runner/check/verdict.hpp"

namespace mlenv::cli {

struct Subject {
  std::string name;               ///< as it was given
  std::string shown;              ///< of a file: without its folder and `.json`
  std::vector<ImageFacts> facts;  ///< one for each platform, never empty
  /// What this host's store has not unpacked of it; nothing: it is no image of the store.
  std::optional<std::uint64_t> bytes_to_store = {};

  /// That for the host's architecture, else the first.
  const ImageFacts& on(const Facts& host) const;
};

/// A path that ends in `.yaml` or `.yml` means that recipe (its lock, where that is there and is
/// the recipe's), one in `.lock` a lock, one in `.json` facts of an image; else what the store has
/// by that name. Throws what reading them throws, `absent`, and what `image_named` does.
Subject subject_named(Ui& ui, const std::string& argument);

/// The recipe's lock beside it; nullopt where there is none, or one of something else (it says so).
std::optional<LockSet> own_lock(const Ui& ui, const Recipe& recipe);
/// Of each platform.
std::vector<ImageFacts> facts_of(const LockSet& locks);
/// Where `record`, a `.built` file, names an image of such a lock that lies in the store, or has
/// its facts, those: they are of its files. Throws `built-invalid`.
std::vector<ImageFacts> facts_of(Ui& ui, const LockSet& locks, const fs::path& record);
std::vector<ImageFacts> facts_of(const Recipe& recipe);

struct CheckedHost {
  std::string name;  ///< `this host`, or its file's without `.json`
  Facts facts;
  bool is_this() const { return name == kThisHost; }
  static constexpr const char* kThisHost = "this host";
};
CheckedHost this_host();
CheckedHost host_of_file(const std::string& path);
/// Every `*.json` in a folder, by name. Throws `absent` where there is none.
std::vector<CheckedHost> hosts_in(const std::string& folder);

/// One subject on one host.
struct Cell {
  const Subject* subject = nullptr;
  const CheckedHost* host = nullptr;
  Verdict verdict;
};
/// All that `check` has to say.
struct Checked {
  std::vector<Subject> subjects;
  std::vector<CheckedHost> hosts;
  std::vector<Cell> cells;  ///< subject by subject, each on every host; they point into the above
  Verdict together;         ///< what only shows between the subjects

  bool any(Severity at_least) const;
  /// Whether a rule could not be judged that may find something of that severity or a worse one.
  bool leaves_open(Severity at_least) const;
};
/// Fills `cells` and `together`.
void judge_all(Checked& checked, const Use& use);

}  // namespace mlenv::cli
