#include "recipes/resolve/limits.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/core.h>

#include "base/error.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Without those that another requirement mends.
std::vector<LimitFault> mended_by(const std::string& requirement, std::vector<LimitFault> faults) {
  std::erase_if(faults,
                [&](const LimitFault& one) { return one.limit->requirement() != requirement; });
  return faults;
}

/// `write `numpy<2` in place of `numpy==2.1.0` (r.yaml:7)`
std::string mend(const Recipe& recipe, const PackageLimit& limit) {
  const std::string wanted = limit.requirement();
  const auto is_its = [&](const std::string& text) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    return one != nullptr && one->normalised_name() == limit.other;
  };
  for (const Placed& one : recipe.packages) {
    if (!is_its(one.text)) continue;
    return fmt::format("write `{}` in place of `{}` ({}:{})", wanted, one.text,
                       recipe.path.string(), one.line);
  }
  for (const auto* list : {&recipe.listed.requirements, &recipe.listed.constraints}) {
    for (const ListedText& one : *list) {
      if (!is_its(one.text)) continue;
      const std::string file = one.file ? one.file->shown_path.string() : recipe.path.string();
      return fmt::format("write `{}` in place of `{}` ({}:{})", wanted, one.text, file, one.line);
    }
  }
  return fmt::format("`constraints: [\"{}\"]` has mlenv say what stands against an older one",
                     wanted);
}

/// `torch 2.0.1 is built for NumPy 1; the same holds for pandas 2.0.3`
std::string reason(const std::vector<LimitFault>& faults) {
  std::string text = fmt::format("{} {}", faults.front().package, faults.front().limit->why);
  std::vector<std::string> others;
  for (std::size_t i = 1; i < faults.size(); ++i) others.push_back(faults[i].package);
  if (!others.empty()) text += fmt::format("; the same holds for {}", listed(others, 3));
  return text;
}

/// Holds one answer to limits, one after the other.
class LimitSearch {
 public:
  LimitSearch(const WheelRequest& request, WheelResolution found, const FindWheels& find)
      : request_(request), found_(std::move(found)), find_(find) {}

  WheelResolution run() {
    constexpr int kMostRounds = 12;
    constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
    for (int round = 0; round < kMostRounds; ++round) {
      const std::vector<LimitFault> faults = next_faults();
      if (faults.empty()) break;
      const std::string next = faults.front().limit->requirement();
      if (!hold({next}, next, kAny)) {
        given_up_.insert(next);
        if (hold_packages(faults, next)) continue;
        for (const LimitFault& one : faults) {
          notes_.push_back(fmt::format("{}: {}", one.str(), mend(*request_.recipe, *one.limit)));
        }
        continue;
      }
      const LockedWheel* now = find_wheel(found_.wheels, faults.front().limit->other);
      notes_.push_back(fmt::format("`{}` is held to{}: {}", next,
                                   now == nullptr ? "" : ", " + now->version, reason(faults)));
    }
    found_.limits = std::move(limits_);
    found_.limit_notes = std::move(notes_);
    return std::move(found_);
  }

 private:
  /// Those that the first requirement mends which was not given up.
  std::vector<LimitFault> next_faults() const {
    std::vector<LimitFault> faults = limit_faults(found_.wheels);
    std::erase_if(faults, [&](const LimitFault& one) {
      return given_up_.contains(one.limit->requirement());
    });
    if (faults.empty()) return faults;
    const std::string first = faults.front().limit->requirement();
    return mended_by(first, std::move(faults));
  }

  /// Where the other package has to stay, those that do not work with it may move instead: to
  /// before the limit began, else to behind it.
  bool hold_packages(const std::vector<LimitFault>& faults, const std::string& requirement) {
    // In the place of one fault there may be none of another limit.
    const std::size_t fewer = limit_faults(found_.wheels).size() - faults.size();
    for (const bool older : {true, false}) {
      std::vector<std::string> bounds;
      for (const LimitFault& one : faults) bounds.push_back(older ? one.older() : one.newer());
      if (std::find(bounds.begin(), bounds.end(), "") != bounds.end()) continue;
      if (!hold(bounds, requirement, fewer)) continue;
      for (std::size_t i = 0; i < faults.size(); ++i) {
        const LimitFault& one = faults[i];
        const LockedWheel* now = find_wheel(found_.wheels, one.name());
        notes_.push_back(fmt::format("`{}` is held to{}: {}", bounds[i],
                                     now == nullptr ? "" : ", " + now->version, one.str()));
      }
      return true;
    }
    return false;
  }

  /// Whether there is an answer with the constraints that mends what `requirement` does and leaves
  /// not more than so many faults of any limit. What came as wheels before is to do so again:
  /// nothing is built for the sake of a limit.
  bool hold(const std::vector<std::string>& constraints, const std::string& requirement,
            std::size_t most_left) {
    WheelRequest request = request_;
    request.limits.insert(request.limits.end(), limits_.begin(), limits_.end());
    request.limits.insert(request.limits.end(), constraints.begin(), constraints.end());
    if (found_.sources.empty()) request.build = nullptr;
    try {
      WheelAnswer answer = find_(request);
      auto* held = std::get_if<WheelResolution>(&answer);
      if (held == nullptr) return false;
      const std::vector<LimitFault> left = limit_faults(held->wheels);
      if (!mended_by(requirement, left).empty()) return false;
      if (left.size() > most_left) return false;
      found_ = std::move(*held);
      limits_.insert(limits_.end(), constraints.begin(), constraints.end());
      return true;
    } catch (const Error& error) {
      if (error.code() != "build-failed") throw;
      return false;
    }
  }

  const WheelRequest& request_;
  WheelResolution found_;
  const FindWheels& find_;
  std::vector<std::string> limits_;
  std::set<std::string> given_up_;
  std::vector<std::string> notes_;
};

}  // namespace

std::string LimitFault::name() const { return package.substr(0, package.find(' ')); }

std::string LimitFault::older() const {
  return limit->from.empty() ? "" : fmt::format("{}<{}", name(), limit->from);
}

std::string LimitFault::newer() const { return fmt::format("{}>={}", name(), limit->before); }

std::string LimitFault::str() const {
  return fmt::format("{} {}, and does not work with {} {}", package, limit->why, limit->other,
                     other);
}

std::vector<LimitFault> limit_faults(const std::vector<LockedWheel>& wheels) {
  std::vector<LimitFault> faults;
  for (const PackageLimit& limit : package_limits().limits) {
    const LockedWheel* other = find_wheel(wheels, limit.other);
    if (other == nullptr || version_satisfies(other->version, limit.specifier)) continue;
    for (const std::string& name : limit.packages) {
      const LockedWheel* one = find_wheel(wheels, name);
      if (one == nullptr || !limit.holds_for(name, one->version)) continue;
      faults.push_back({&limit, fmt::format("{} {}", name, one->version), other->version});
    }
  }
  return faults;
}

WheelAnswer within_limits(const WheelRequest& request, WheelAnswer answer, const FindWheels& find) {
  auto* resolution = std::get_if<WheelResolution>(&answer);
  if (resolution == nullptr || limit_faults(resolution->wheels).empty()) return answer;
  return LimitSearch(request, std::move(*resolution), find).run();
}

}  // namespace mlenv
