#pragma once
// The bytes that a lock names, fetched once, verified while they arrive, whatever place they come
// from: store, cache, vendored copies, the machine's package sources, archives of snapshots.
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/pool.hpp"
#include "base/progress.hpp"
#include "builder/locked_files.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {

/// Where inputs may be had; answered by the resolvers, handed in by the CLI.
struct InputSources {
  /// Where these lie; `anew` asks the indexes even for what is remembered.
  std::function<WheelPlaces(const std::vector<LockedWheel>&, bool anew)> wheel_places;
  /// To be tried in order.
  std::function<std::vector<std::string>(const LockedDeb&)> deb_urls;
  /// Of the source release of a wheel; empty: nowhere.
  std::function<std::string(const LockedSource&)> source_url;
  std::string python_url;  ///< of the lock's interpreter; empty where it has none
  /// Brings config and layers of the lock's base, an image, into the store.
  std::function<void()> provide_base;
  VendorFolders vendor;
  std::vector<std::string> snapshots;  ///< asked last, as `snapshot_urls` has them
};

/// Whether an error says that an input is gone, or changed: others may still be there.
bool is_gone(const Error& error);

/// What a build has yet to read.
struct InputNeeds {
  std::vector<LockedWheel> wheels;
  std::vector<LockedDeb> debs;
  std::optional<LockedPython> python;
};

class Inputs {
 public:
  Inputs(Store& store, Http& http, InputSources sources, fs::path cache, Progress& progress);

  /// Asks where the missing ones of `wheels` are, all at once; call before `wheel`. Throws
  /// `input-gone` naming all that are nowhere, `input-changed` where an index has other bytes.
  void locate(const std::vector<LockedWheel>& wheels);
  /// The wheel's file in the store, fetched when missing; where its server fails, all wheels are
  /// located anew, once: an index may have moved since. From many threads. Throws as `locate`, and
  /// `network` where no server answered.
  fs::path wheel(const LockedWheel& wheel);
  /// The package's file in the cache, its digest checked, fetched when missing or damaged. From
  /// many threads. Throws `input-gone` when no source has it, `input-changed` when those that have
  /// it have other bytes.
  fs::path package(const LockedDeb& deb);
  /// All of these, in their order; every one is tried before it throws. `done` is told of each.
  std::vector<fs::path> packages(const std::vector<LockedDeb>& debs, Pool& pool,
                                 const std::function<void()>& done);
  /// As `package`, for the archive of the recipe's own Python.
  fs::path python(const LockedPython& python);
  /// As `package`, for the source release of a wheel.
  fs::path source(const LockedSource& source);
  /// Config and layers of a base that is an image, whole in the store afterwards.
  void base_image(const LockedBase& base);

  /// After such an error: the same about everything of `needs` that is gone. What was not tried yet
  /// is looked for without being fetched.
  Error all_gone(const Error& first, const InputNeeds& needs);

 private:
  struct Gone {
    std::string file;
    std::string reason;
    bool changed = false;  ///< it is there, with other bytes
  };
  class Tries;

  WheelPlaces places_of(const std::vector<LockedWheel>& wheels, bool anew);
  std::string url_anew(const LockedWheel& wheel);
  void fetch_wheel(const LockedWheel& wheel, const std::string& url);
  /// At `path` in the cache.
  fs::path provide(const LockedFile& file, const fs::path& path,
                   const std::function<std::vector<std::string>()>& urls);
  void fetch_to(const LockedFile& file, const std::string& url, const fs::path& path);
  void note(const LockedFile& file, Gone gone);
  Error gone_error();
  std::vector<std::string> urls_of(const LockedWheel& wheel);
  /// Of a wheel that no index has as it was locked: what to say, and whether it has changed there.
  std::pair<std::string, bool> why_nowhere(const LockedWheel& wheel);
  void look_for(const LockedFile& file, const std::vector<std::string>& urls);
  std::string why_absent(const std::string& url, std::uint64_t size_bytes);

  Store& store_;
  Http& http_;
  InputSources sources_;
  fs::path cache_;
  Progress& progress_;
  std::mutex mutex_;
  std::vector<LockedWheel> missing_;
  WheelPlaces places_;
  bool anew_ = false;
  std::map<std::string, Gone> gone_;         ///< by digest
  std::map<std::string, std::string> lost_;  ///< hosts that do not answer, and why
};

}  // namespace mlenv
