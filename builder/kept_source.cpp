#include "builder/kept_source.hpp"

#include <algorithm>

namespace mlenv {

const LockedSource* kept_source(const DirectRequirement& wanted, const Lock* before) {
  if (before == nullptr) return nullptr;
  for (const LockedSource& source : before->sources) {
    if (source.name == wanted.name && is_from(source, wanted.address)) return &source;
  }
  return nullptr;
}

bool builds_alike(const Lock& before, const Lock& now) {
  return before.debs == now.debs && before.epoch == now.epoch && before.python == now.python &&
         before.interpreter == now.interpreter && before.base == now.base &&
         before.request.steering.build == now.request.steering.build;
}

const LockedWheel& wheel_of(const LockedSource& source, const Lock& lock) {
  return *find_wheel(lock.wheels, source.name);
}

std::vector<LockedWheel> tools_of(const LockedSource& source, const Lock& lock) {
  std::vector<LockedWheel> tools;
  for (const LockedWheel& one : lock.build_wheels) {
    const auto& with = source.built_with;
    if (std::find(with.begin(), with.end(), one.file) != with.end()) tools.push_back(one);
  }
  return tools;
}

}  // namespace mlenv
