#pragma once
// What uv is asked for a request, and what is read from its answers, both where wheels are found
// (wheels.cpp) and where it is told why there are none (wheel_failures.hpp).
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recipes/resolve/pylock.hpp"
#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/wheel_tags.hpp"

namespace mlenv {

class WheelSearch {
 public:
  /// They must outlive this.
  WheelSearch(const WheelRequest& request, const fs::path& uv, const fs::path& cache);

  UvQuestion question;  ///< of all that is asked for; grows with uv's answers

  const WheelRequest& request() const { return request_; }
  const Recipe& recipe() const { return *request_.recipe; }
  UvAnswer ask(const UvQuestion& asked) const { return ask_uv(asked, request_, uv_, cache_); }
  /// The same for another Python, `3.9`.
  UvAnswer ask_for_python(const UvQuestion& asked, const std::string& minor) const;

  bool is_requested(const std::string& name) const { return requested_.contains(name); }
  /// nullptr for a package of the indexes.
  const BuiltRelease* direct_of(const std::string& name) const;
  /// Whether `no-binary` names it.
  bool is_from_source(const std::string& name) const;

  /// The best wheel for the image; nullopt: none is for it.
  std::optional<std::size_t> best_of(const PylockPackage& package) const;
  /// The first package that has none; nullptr: each has one.
  const PylockPackage* without_wheel(const PylockPackages& packages) const;
  const WheelTags& tags() const { return tags_; }

 private:
  const WheelRequest& request_;
  const fs::path& uv_;
  const fs::path& cache_;
  WheelTags tags_;
  std::set<std::string> requested_;
};

std::vector<std::string> wheel_files(const PylockPackage& package);

}  // namespace mlenv
