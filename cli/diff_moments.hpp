#pragma once
// What `diff` compares beside locks and images: runs, and hosts by their facts.
#include <optional>

#include "cli/diff_sides.hpp"
#include "runner/changes/changes.hpp"

namespace mlenv::cli {

struct NamedMoment {
  std::string name;  ///< as it was given
  changes::Moment moment;
  std::string_view kind() const;  ///< `run`, `facts`, or `host` for this one
};

/// `host` is this host, `last` and `last~N` are runs; a path that ends in `.json` is what `mlenv
/// runs show --json` or `mlenv facts --json` wrote; `JOB:NODE` a node of a job; a part of a run's
/// id is that run, where no image and no file has that name. nullopt: something else. Throws
/// `no-run`, `ambiguous`, `absent`, and what reading records and facts throws.
std::optional<NamedMoment> moment_named(Ui& ui, const std::string& argument);

/// Two of them. What their images have installed is read where they are not the same image.
changes::Changes compare(Ui& ui, NamedMoment& from, NamedMoment& to);

/// The image of a run, to be compared with another one or with a lock. Throws `diff-pair` (usage)
/// for a host, and `not-found` for an image that is gone, where the record does not say what it
/// had.
Side side_of(Ui& ui, const NamedMoment& one, std::string_view other);

}  // namespace mlenv::cli
