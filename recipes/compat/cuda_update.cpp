#include "recipes/compat/cuda_update.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kPrefix = "redistrib_";
constexpr std::string_view kSuffix = ".json";
/// No part of a version has more than three digits. Who looks no further is done with any listing.
constexpr std::size_t kLongestName =
    kPrefix.size() + std::string_view("999.999.999").size() + kSuffix.size();
constexpr const char* kSource = "redistributables";
constexpr const char* kWhat = "NVIDIA's index of CUDA redistributables, redistrib_X.Y.Z.json";

Error invalid(std::string_view name, std::string why) {
  return failure("redistrib-invalid", "`{}` is no file of NVIDIA's index", name)
      .because(std::move(why))
      .hint("ask the place that it came from; the table in use stays as it is");
}

/// `12.6.3` of `redistrib_12.6.3.json`; empty for other names.
std::string_view redistrib_version(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return {};
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(kSuffix.size(), name.size()));
  const auto parts = split(name, '.');
  const bool numbers =
      parts.size() == 3 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
        return !part.empty() && part.size() <= 3 && std::all_of(part.begin(), part.end(), is_digit);
      });
  return numbers ? name : std::string_view{};
}

/// A text member; empty where there is none.
std::string text_in(const nlohmann::json& object, const char* key, std::string_view name) {
  const auto member = object.find(key);
  if (member == object.end()) return {};
  if (!member->is_string()) throw invalid(name, fmt::format("its `{}` is no text", key));
  return member->get<std::string>();
}

nlohmann::json parsed_redistrib(std::string_view text, std::string_view name) {
  try {
    return parse_json(text, name);
  } catch (const Error& error) {
    throw invalid(name, error.frames().back());
  }
}

std::string full_release(const Redistrib& one) {
  return fmt::format("{}.{}", one.release, one.update);
}

/// `580` of `580.65.06`.
int branch_of(std::string_view driver) {
  const std::string_view digits = driver.substr(0, driver.find('.'));
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

class Update {
 public:
  Update(const CudaTable& from, const std::string& today)
      : today_(today), newest_known_(from.releases.front().release) {
    made_.table = from;
    made_.table.date = today;
    made_.table.sources.emplace(kSource, kWhat);
  }

  void take(const Redistrib& one) {
    if (one.driver.empty()) return;
    auto& rows = made_.table.releases;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const CudaTable::Release& known) {
      return known.release == one.release;
    });
    if (row == rows.end()) {
      add(one);
    } else if (row->driver != one.driver && std::find(row->updates.begin(), row->updates.end(),
                                                      one.driver) == row->updates.end()) {
      extend(row, one);
    }
  }

  CudaUpdate finish() { return std::move(made_); }

 private:
  using Row = std::vector<CudaTable::Release>::iterator;

  void leave_out(const Redistrib& one, std::string_view why) {
    made_.left_out.push_back(fmt::format("CUDA {}: {}", full_release(one), why));
  }

  /// They come oldest first: one that is taken is the newest.
  void add(const Redistrib& one) {
    const std::string_view release = one.release;
    const auto& floors = made_.table.floors;
    const bool known_major =
        std::any_of(floors.begin(), floors.end(), [&](const CudaTable::Floor& floor) {
          return release.substr(0, release.find('.')) == floor.major;
        });
    if (!known_major) return leave_out(one, "the oldest driver of its major version is unknown");
    if (!is_older(newest_known_, release)) return leave_out(one, "it was never released");
    if (one.update != 0) return leave_out(one, "the driver of its first release is unknown");
    const CudaTable::Release& before = made_.table.releases.front();
    const std::string& newest = before.updates.empty() ? before.driver : before.updates.back();
    // Each release so far was 5 to 15 branches from the one before it.
    constexpr int kFarthest = 100;
    if (!is_older(newest, one.driver) || branch_of(one.driver) > branch_of(newest) + kFarthest) {
      throw invalid(fmt::format("redistrib_{}.json", full_release(one)),
                    fmt::format("driver {} does not follow {} of CUDA {}", one.driver, newest,
                                before.release));
    }
    made_.table.releases.insert(made_.table.releases.begin(),
                                {one.release, one.driver, {}, {kSource, today_, {}, {}}});
    made_.added.push_back(one.release);
    made_.changed = true;
  }

  /// A driver that is new to a release that is known. Updates stay in their branch.
  void extend(Row row, const Redistrib& one) {
    const bool before_next =
        row == made_.table.releases.begin() || is_older(one.driver, std::prev(row)->driver);
    if (one.update == 0 || !before_next || !is_older(row->driver, one.driver) ||
        branch_of(one.driver) != branch_of(row->driver)) {
      return differ(row, one);
    }
    row->updates.insert(
        std::find_if(row->updates.begin(), row->updates.end(),
                     [&](const std::string& known) { return is_older(one.driver, known); }),
        one.driver);
    made_.changed = true;
    const auto noted = [&](const std::vector<std::string>& list) {
      return std::find(list.begin(), list.end(), one.release) != list.end();
    };
    if (!noted(made_.added) && !noted(made_.extended)) made_.extended.push_back(one.release);
  }

  void differ(Row row, const Redistrib& one) {
    leave_out(one, fmt::format("driver {} in the index, {} here", one.driver, row->driver));
    if (!row->origin.conflict.empty()) return;  // the first is kept
    row->origin.standing = "conflicting";
    row->origin.conflict =
        fmt::format("NVIDIA's index has {} for {}", one.driver, full_release(one));
    made_.changed = true;
  }

  CudaUpdate made_;
  std::string today_;
  std::string newest_known_;
};

}  // namespace

std::vector<std::string> redistrib_names(std::string_view listing, std::string_view oldest) {
  std::vector<std::string> names;
  for (std::size_t at = listing.find(kPrefix); at != std::string_view::npos;
       at = listing.find(kPrefix, at + 1)) {
    const std::string_view rest = listing.substr(at, kLongestName);
    const std::size_t end = rest.find(kSuffix);
    if (end == std::string_view::npos) continue;
    const std::string_view name = rest.substr(0, end + kSuffix.size());
    const std::string_view version = redistrib_version(name);
    if (!version.empty() && !is_older(version_prefix(version, 2), oldest)) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end(), [](std::string_view a, std::string_view b) {
    return is_older(redistrib_version(a), redistrib_version(b));
  });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Redistrib parse_redistrib(std::string_view text, std::string_view name) {
  const std::string_view version = redistrib_version(name);
  if (version.empty()) throw invalid(name, "its name is not redistrib_X.Y.Z.json");
  const nlohmann::json root = parsed_redistrib(text, name);
  if (!root.is_object()) throw invalid(name, "it is no JSON object");
  const std::string label = text_in(root, "release_label", name);
  if (!label.empty() && label != version) {
    throw invalid(name, fmt::format("it says that it is of CUDA {}", label));
  }
  Redistrib found;
  found.release = version_prefix(version, 2);
  const std::string_view last = version.substr(version.rfind('.') + 1);
  std::from_chars(last.data(), last.data() + last.size(), found.update);
  const std::string date = text_in(root, "release_date", name);
  if (!date.empty() && !is_date(date)) {
    throw invalid(name, fmt::format("its `release_date` is `{}`", date));
  }
  const auto driver = root.find("nvidia_driver");
  if (driver == root.end()) return found;
  if (!driver->is_object()) throw invalid(name, "its `nvidia_driver` is no JSON object");
  if (!driver->contains("linux-x86_64")) return found;
  found.driver = text_in(*driver, "version", name);
  if (!is_driver_version(found.driver)) {
    throw invalid(name, fmt::format("`{}` is no driver's version", found.driver));
  }
  return found;
}

CudaUpdate updated_cuda_table(const CudaTable& from, std::vector<Redistrib> found,
                              const std::string& today) {
  std::sort(found.begin(), found.end(), [](const Redistrib& a, const Redistrib& b) {
    return is_older(full_release(a), full_release(b));
  });
  Update update(from, today);
  for (const Redistrib& one : found) update.take(one);
  return update.finish();
}

}  // namespace mlenv
