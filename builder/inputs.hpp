#pragma once
// The bytes that a lock names, fetched once, verified while they arrive.
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// Where inputs may be had; answered by the resolvers, handed in by the CLI.
struct InputSources {
  /// URL by hex digest; wheels that are nowhere are missing. `anew` asks the indexes even for what
  /// is remembered.
  std::function<std::map<std::string, std::string>(const std::vector<LockedWheel>&, bool anew)>
      wheel_urls;
  /// To be tried in order.
  std::function<std::vector<std::string>(const LockedDeb&)> deb_urls;
  std::string python_url;  ///< of the lock's interpreter; empty where it has none
  /// Brings config and layers of the lock's base, an image, into the store.
  std::function<void()> provide_base;
};

class Inputs {
 public:
  Inputs(Store& store, Http& http, InputSources sources, fs::path cache, Progress& progress);

  /// Asks where the missing ones of `wheels` are, all at once; call before `wheel`. Throws
  /// `input-gone` naming all that are nowhere.
  void locate(const std::vector<LockedWheel>& wheels);
  /// The wheel's file in the store, downloaded when missing; where its server fails, all wheels are
  /// located anew, once: an index may have moved since. From many threads.
  fs::path wheel(const LockedWheel& wheel);
  /// The package's file in the cache, its digest checked, downloaded when missing or damaged. From
  /// many threads. Throws `input-gone` when no source has it.
  fs::path package(const LockedDeb& deb);
  /// The same for the archive of the recipe's own Python.
  fs::path python(const LockedPython& python);
  /// Config and layers of a base that is an image, whole in the store afterwards.
  void base_image() const { sources_.provide_base(); }

 private:
  std::string url_of(const LockedWheel& wheel);
  std::string url_anew(const LockedWheel& wheel);
  void fetch(const LockedWheel& wheel, const std::string& url);

  Store& store_;
  Http& http_;
  InputSources sources_;
  fs::path cache_;
  Progress& progress_;
  std::mutex mutex_;
  std::vector<LockedWheel> missing_;
  std::map<std::string, std::string> urls_;
  bool anew_ = false;
};

}  // namespace mlenv
