#include "builder/inputs.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/log.hpp"
#include "builder/input_places.hpp"
#include "recipes/resolve/interpreter.hpp"

namespace mlenv {
namespace {

std::string url_of_file(const fs::path& path) {
  return std::string(kFileScheme) + fs::absolute(path).string();
}

/// A file of this machine (a folder of wheels that uv was told of, a vendored copy), verified.
void copy_local(const fs::path& path, const LockedFile& what, int file) {
  const Fd source_fd = open_file(path);
  FdSource source{source_fd.get()};
  FdSink sink{file};
  VerifyingSink verified{sink, what.digest, what.size_bytes, path.string()};
  copy(source, verified);
  verified.finish();
}

/// As against this machine's disk.
bool blames_server(const Error& error) {
  for (const char* code : {"network", "certificate", "http-status", "digest-mismatch", "absent"}) {
    if (error.code() == code) return true;
  }
  return false;
}

}  // namespace

/// What was tried for one file, place after place.
class Inputs::Tries {
 public:
  Tries(Inputs& inputs, LockedFile file) : inputs_(inputs), file_(std::move(file)) {}

  /// Whether `fetch` brought it from `url`. Goes on with errors that are not about that place.
  bool worked(const std::string& url, const std::function<void()>& fetch) {
    return tried(url, fetch, /*is_source=*/true);
  }
  /// The same of a vendored copy, which says nothing of what sources have.
  bool copied(const fs::path& path, const std::function<void(const std::string& url)>& fetch) {
    const std::string url = url_of_file(path);
    return tried(
        url, [&] { fetch(url); }, /*is_source=*/false);
  }

  void add(const std::string& reason, bool changed) {
    add_reason(gone_.reason, reason);
    gone_.changed = gone_.changed || changed;
    answered_ = true;
  }

  [[noreturn]] void give_up() {
    if (last_ && !answered_ && is_no_answer(*last_)) throw Error{*last_};
    gone_.file = file_.file;
    if (gone_.reason.empty()) gone_.reason = "no package source is known for it";
    inputs_.note(file_, gone_);
    throw inputs_.gone_error();
  }

 private:
  bool tried(const std::string& url, const std::function<void()>& fetch, bool is_source) {
    try {
      fetch();
      return true;
    } catch (const Error& error) {
      if (!blames_server(error)) throw;
      log::debug("`{}` does not come from `{}`: {}", file_.file, display_url(url), error.what());
      add_reason(gone_.reason, told(error, url));
      gone_.changed = gone_.changed || (is_source && error.code() == "digest-mismatch");
      if (is_source && !is_no_answer(error)) answered_ = true;
      last_ = error;
      return false;
    }
  }

  Inputs& inputs_;
  LockedFile file_;
  Gone gone_;
  bool answered_ = false;  ///< some place does not have it, or has something else
  std::optional<Error> last_;
};

Inputs::Inputs(Store& store, Http& http, InputSources sources, fs::path cache, Progress& progress)
    : store_(store),
      http_(http),
      sources_(std::move(sources)),
      cache_(std::move(cache)),
      progress_(progress) {}

// --- wheels --------------------------------------------------------------------------------------

/// Without an index that answers, archives of snapshots may still have them all.
WheelPlaces Inputs::places_of(const std::vector<LockedWheel>& wheels, bool anew) {
  try {
    return sources_.wheel_places(wheels, anew);
  } catch (const Error& error) {
    const bool others = std::all_of(wheels.begin(), wheels.end(), [&](const LockedWheel& wheel) {
      return !snapshot_urls(locked_file(wheel), sources_.snapshots).empty();
    });
    if (!others) throw;
    log::debug("the indexes cannot be asked: {}", error.what());
    return {};
  }
}

void Inputs::locate(const std::vector<LockedWheel>& wheels) {
  missing_.clear();
  for (const LockedWheel& wheel : wheels) {
    if (store_.path_of(wheel.digest) || sources_.vendor.find(locked_file(wheel))) continue;
    missing_.push_back(wheel);
  }
  if (missing_.empty()) return;
  places_ = places_of(missing_, /*anew=*/false);
  anew_ = false;
  for (const LockedWheel& wheel : missing_) {
    if (!urls_of(wheel).empty()) continue;
    auto [reason, changed] = why_nowhere(wheel);
    note(locked_file(wheel), {wheel.file, std::move(reason), changed});
  }
  if (!gone_.empty()) throw gone_error();
}

std::pair<std::string, bool> Inputs::why_nowhere(const LockedWheel& wheel) {
  const std::lock_guard lock{mutex_};
  const auto other = places_.others.find(wheel.digest.hex());
  if (other == places_.others.end()) {
    return {"it is on none of this machine's package indexes", false};
  }
  return {fmt::format("the lock has {}, the index has {}", wheel.digest.str(), other->second.str()),
          true};
}

std::vector<std::string> Inputs::urls_of(const LockedWheel& wheel) {
  std::vector<std::string> urls = snapshot_urls(locked_file(wheel), sources_.snapshots);
  const auto url = places_.urls.find(wheel.digest.hex());
  if (url != places_.urls.end()) urls.insert(urls.begin(), url->second);
  return urls;
}

/// Empty: nowhere.
std::string Inputs::url_anew(const LockedWheel& wheel) {
  const std::lock_guard lock{mutex_};
  const auto is_it = [&](const LockedWheel& one) { return one.digest == wheel.digest; };
  if (!anew_) {
    anew_ = true;
    // A vendored copy may turn out to be damaged.
    if (std::none_of(missing_.begin(), missing_.end(), is_it)) missing_.push_back(wheel);
    WheelPlaces found = places_of(missing_, /*anew=*/true);
    for (auto& [hex, url] : found.urls) places_.urls[hex] = url;
    places_.others.merge(found.others);
  } else if (std::none_of(missing_.begin(), missing_.end(), is_it)) {
    missing_.push_back(wheel);
    places_.urls.merge(places_of({wheel}, /*anew=*/false).urls);
  }
  const auto url = places_.urls.find(wheel.digest.hex());
  return url == places_.urls.end() ? std::string{} : url->second;
}

void Inputs::fetch_wheel(const LockedWheel& wheel, const std::string& url) {
  Activity activity{progress_, "download " + wheel.file, wheel.size_bytes};
  Store::Staged staged = store_.stage();
  reserve_room(staged.fd(), wheel.size_bytes);
  while_doing("fetching `" + wheel.file + "`", [&] {
    if (is_local(url)) return copy_local(local_path(url), locked_file(wheel), staged.fd());
    Download what;
    what.url = url;
    what.digest = wheel.digest;
    what.size_bytes = wheel.size_bytes;
    what.hashes = &store_.hashes();
    http_.download(what, staged.fd(), [&](std::uint64_t count) { activity.advance(count); });
  });
  staged.commit(wheel.digest);
}

fs::path Inputs::wheel(const LockedWheel& wheel) {
  if (std::optional<fs::path> path = store_.path_of(wheel.digest)) return *path;
  const LockedFile file = locked_file(wheel);
  Tries tries{*this, file};
  const auto tried = [&](const std::string& url) {
    return tries.worked(url, [&] { fetch_wheel(wheel, url); });
  };
  const std::vector<fs::path> vendored = sources_.vendor.all(file);
  std::vector<std::string> urls;
  {
    const std::lock_guard lock{mutex_};
    urls = urls_of(wheel);
  }
  if (vendored.empty() && urls.empty()) {
    throw Error{Kind::internal, "unlocated", "a wheel was asked for before it was located"};
  }
  bool done = std::any_of(vendored.begin(), vendored.end(), [&](const fs::path& path) {
    return tries.copied(path, [&](const std::string& url) { fetch_wheel(wheel, url); });
  });
  const std::vector<std::string> last = snapshot_urls(file, sources_.snapshots);
  const std::string first = urls.size() > last.size() ? urls.front() : std::string{};
  if (!done && !first.empty()) done = tried(first);
  if (!done) {
    const std::string anew = url_anew(wheel);
    if (anew.empty()) {
      const auto [reason, changed] = why_nowhere(wheel);
      tries.add(reason, changed);
    } else if (anew != first) {
      done = tried(anew);
    }
  }
  done = done || std::any_of(last.begin(), last.end(), tried);
  if (!done) tries.give_up();
  if (std::optional<fs::path> path = store_.path_of(wheel.digest)) return *path;
  throw failure("absent", "`{}` vanished from the store", wheel.file).hint("build again");
}

// --- what lies in the cache ----------------------------------------------------------------------

void Inputs::fetch_to(const LockedFile& file, const std::string& url, const fs::path& path) {
  AtomicFile target{path};
  if (is_local(url)) {
    copy_local(local_path(url), file, target.fd());
  } else {
    Download what;
    what.url = url;
    what.digest = file.digest;
    what.size_bytes = file.size_bytes;
    http_.download(what, target.fd(), {});
  }
  target.commit(/*durable=*/false);
}

fs::path Inputs::provide(const LockedFile& file, const fs::path& path,
                         const std::function<std::vector<std::string>()>& urls) {
  if (is_intact(path, file.size_bytes, file.digest)) return path;
  make_folders(path.parent_path());
  Tries tries{*this, file};
  const auto tried = [&](const std::string& url) {
    return tries.worked(url, [&] { fetch_to(file, url, path); });
  };
  const auto any = [&](const std::vector<std::string>& from) {
    return std::any_of(from.begin(), from.end(), tried);
  };
  const auto known = [&]() -> std::vector<std::string> {
    try {
      return urls();
    } catch (const Error& error) {
      if (error.code() != "no-sources" || sources_.snapshots.empty()) throw;
      tries.add(error.frames().front(), /*changed=*/false);
      return {};
    }
  };
  const std::vector<fs::path> vendored = sources_.vendor.all(file);
  const bool copied = std::any_of(vendored.begin(), vendored.end(), [&](const fs::path& one) {
    return tries.copied(one, [&](const std::string& url) { fetch_to(file, url, path); });
  });
  if (copied || any(known()) || any(snapshot_urls(file, sources_.snapshots))) return path;
  tries.give_up();
}

fs::path Inputs::package(const LockedDeb& deb) {
  return provide(locked_file(deb), cache_ / "debs" / deb.digest.hex(),
                 [&] { return sources_.deb_urls(deb); });
}

std::vector<fs::path> Inputs::packages(const std::vector<LockedDeb>& debs, Pool& pool,
                                       const std::function<void()>& done) {
  std::vector<fs::path> paths(debs.size());
  std::atomic<bool> whole{true};
  pool.for_each(debs.size(), [&](std::size_t i) {
    try {
      paths[i] = package(debs[i]);
    } catch (const Error& error) {
      if (!is_gone(error)) throw;
      whole = false;
    }
    done();
  });
  if (!whole) throw gone_error();
  return paths;
}

fs::path Inputs::python(const LockedPython& python) {
  return provide(locked_file(python), interpreter_path(cache_, python.digest),
                 [&] { return some(sources_.python_url); });
}

fs::path Inputs::source(const LockedSource& source) {
  return provide(locked_file(source), cache_ / "sources" / source.digest.hex(),
                 [&] { return some(sources_.source_url(source)); });
}

void Inputs::base_image(const LockedBase& base) {
  for (const LockedFile& file : base_files(base)) {
    if (store_.has(file.digest)) continue;
    for (const fs::path& path : sources_.vendor.all(file)) {
      Tries tries{*this, file};
      const bool done = tries.copied(path, [&](const std::string&) {
        Store::Staged staged = store_.stage();
        copy_local(path, file, staged.fd());
        staged.commit(file.digest);
      });
      if (done) break;
    }
  }
  sources_.provide_base();
}

}  // namespace mlenv
