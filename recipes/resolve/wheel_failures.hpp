#pragma once
// Why there are no wheels for a request, and what helps: more than uv says of it is asked of uv.
// What a hint says works.
#include <string>
#include <vector>

#include "base/error.hpp"
#include "recipes/resolve/wheel_search.hpp"

namespace mlenv {

class WheelFailures {
 public:
  /// `search` must outlive this; its question counts as it is when something is asked here.
  explicit WheelFailures(const WheelSearch& search) : search_(search) {}

  /// uv's account of a conflict in the recipe's terms.
  Conflict explained(Conflict conflict) const;
  /// Of a release that has no wheel for the image and cannot be built. `wheels_only` is the answer
  /// to the question without sources.
  Conflict no_wheel(const NeedsBuild& package, const UvAnswer& wheels_only) const;
  /// Of a build that failed (`build-failed`): the same error, with what is known of the release.
  /// One that has wheels for older Pythons alone is older than the image's, and more than its build
  /// tools may have to be so.
  Error of_build(const Error& error, const SourceRelease& source) const;

 private:
  Conflict no_source(const NeedsBuild& package) const;
  std::string newest_release(const std::string& name) const;
  std::vector<std::string> absent_names(const std::string& first) const;
  std::vector<std::string> older_pythons(const SourceRelease& source) const;
  std::vector<std::string> other_pythons(const std::string& requirement) const;
  std::vector<std::string> requested_pins(const PylockPackages& packages) const;
  bool fits(const std::vector<std::string>& pins) const;

  const WheelSearch& search_;
};

}  // namespace mlenv
