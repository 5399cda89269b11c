#include "builder/inputs.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/log.hpp"
#include "recipes/resolve/interpreter.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr unsigned kQuestions = 8;

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

bool is_local(std::string_view url) { return url.starts_with(kFileScheme); }
fs::path local_path(std::string_view url) { return url.substr(kFileScheme.size()); }

/// As against this machine's disk.
bool blames_server(const Error& error) {
  for (const char* code : {"network", "certificate", "http-status", "digest-mismatch", "absent"}) {
    if (error.code() == code) return true;
  }
  return false;
}

bool is_no_answer(const Error& error) {
  return error.code() == "network" || error.code() == "certificate";
}

/// `https://host:443`
std::string origin_of(std::string_view url) {
  return display_url(url.substr(0, url.find('/', url.find("://") + 3)));
}

/// The frames of an error on one line.
std::string told(const Error& error, const std::string& url) {
  if (is_no_answer(error)) {
    return fmt::format("`{}` does not answer: {}", origin_of(url), error.frames().back());
  }
  std::string text;
  for (const std::string& frame : error.frames()) text += (text.empty() ? "" : ": ") + frame;
  return text;
}

/// Nothing where it is empty.
std::vector<std::string> some(const std::string& url) {
  if (url.empty()) return {};
  return {url};
}

void add_reason(std::string& reasons, const std::string& reason) {
  if (reasons.find(reason) != std::string::npos) return;
  reasons += (reasons.empty() ? "" : "; ") + reason;
}

}  // namespace

bool is_gone(const Error& error) {
  return error.code() == "input-gone" || error.code() == "input-changed";
}

/// What was tried for one file, place after place.
class Inputs::Tries {
 public:
  Tries(Inputs& inputs, LockedFile file) : inputs_(inputs), file_(std::move(file)) {}

  /// Whether `fetch` brought it from `url`. Goes on with errors that are not about that place.
  bool worked(const std::string& url, const std::function<void()>& fetch) {
    try {
      fetch();
      return true;
    } catch (const Error& error) {
      if (!blames_server(error)) throw;
      log::debug("`{}` does not come from `{}`: {}", file_.file, display_url(url), error.what());
      add_reason(gone_.reason, told(error, url));
      gone_.changed = gone_.changed || error.code() == "digest-mismatch";
      if (!is_no_answer(error)) answered_ = true;
      last_ = error;
      return false;
    }
  }

  void add(const std::string& reason, bool changed) {
    add_reason(gone_.reason, reason);
    gone_.changed = gone_.changed || changed;
    answered_ = true;
  }

  [[noreturn]] void give_up() {
    if (last_ && !answered_) throw Error{*last_};
    gone_.file = file_.file;
    if (gone_.reason.empty()) gone_.reason = "no package source is known for it";
    inputs_.note(file_, gone_);
    throw inputs_.gone_error();
  }

 private:
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
    const auto other = places_.others.find(wheel.digest.hex());
    if (other == places_.others.end()) {
      note(locked_file(wheel), {wheel.file, "it is on none of this machine's package indexes"});
    } else {
      note(locked_file(wheel), {wheel.file,
                                fmt::format("the lock has {}, the index has {}", wheel.digest.str(),
                                            other->second.str()),
                                true});
    }
  }
  if (!gone_.empty()) throw gone_error();
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
  bool done = std::any_of(vendored.begin(), vendored.end(),
                          [&](const fs::path& path) { return tried(url_of_file(path)); });
  const std::vector<std::string> last = snapshot_urls(file, sources_.snapshots);
  const std::string first = urls.size() > last.size() ? urls.front() : std::string{};
  if (!done && !first.empty()) done = tried(first);
  if (!done) {
    const std::string anew = url_anew(wheel);
    if (!anew.empty() && anew != first) done = tried(anew);
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
  std::vector<std::string> vendored;
  for (const fs::path& one : sources_.vendor.all(file)) vendored.push_back(url_of_file(one));
  const auto known = [&]() -> std::vector<std::string> {
    try {
      return urls();
    } catch (const Error& error) {
      if (error.code() != "no-sources" || sources_.snapshots.empty()) throw;
      tries.add(error.frames().front(), /*changed=*/false);
      return {};
    }
  };
  if (any(vendored) || any(known()) || any(snapshot_urls(file, sources_.snapshots))) return path;
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
      const bool done = tries.worked(url_of_file(path), [&] {
        Store::Staged staged = store_.stage();
        copy_local(path, file, staged.fd());
        staged.commit(file.digest);
      });
      if (done) break;
    }
  }
  sources_.provide_base();
}

// --- what is gone --------------------------------------------------------------------------------

void Inputs::note(const LockedFile& file, Gone gone) {
  const std::lock_guard lock{mutex_};
  gone_.insert_or_assign(file.digest.hex(), std::move(gone));
}

Error Inputs::gone_error() {
  const std::lock_guard lock{mutex_};
  std::map<std::string, std::set<std::string>> files;  // by reason
  bool changed = true;
  for (const auto& [hex, gone] : gone_) {
    files[gone.reason].insert(gone.file.empty() ? gone.file : '`' + gone.file + '`');
    changed = changed && gone.changed;
  }
  Error error = changed
                    ? failure("input-changed", "what the lock names is there with other bytes")
                    : failure("input-gone", "not everything that the lock names can still be had");
  std::set<std::string> lines;
  for (const auto& [reason, names] : files) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    lines.insert(text + (text.empty() ? "" : ": ") + reason);
  }
  for (const std::string& line : lines) error.because(line);
  return std::move(error).hint(
      changed ? "a published file must not change: ask who keeps the index. `mlenv lock --upgrade` "
                "takes the new bytes; where a machine still has the old ones, `mlenv vendor` there "
                "brings them here"
              : "where a machine still has them, `mlenv vendor` there brings them here; or name an "
                "archive of old packages under `snapshots`, or lock again with `mlenv lock "
                "--upgrade`");
}

/// Empty: it is there, as far as can be told without fetching it.
std::string Inputs::why_absent(const std::string& url, std::uint64_t size_bytes) {
  if (is_local(url)) {
    std::error_code error;
    const bool there = fs::file_size(local_path(url), error) == size_bytes && !error;
    return there ? std::string{} : fmt::format("`{}` is not there", local_path(url).string());
  }
  const std::string origin = origin_of(url);
  {
    const std::lock_guard lock{mutex_};
    if (const auto lost = lost_.find(origin); lost != lost_.end()) return lost->second;
  }
  HttpRequest request;
  request.method = "HEAD";
  request.url = url;
  request.retry = false;
  try {
    const HttpResponse response = http_.send(request);
    // Some servers do not answer HEAD; they may have it.
    if (response.status == 405 || response.status == 501) return {};
    const std::string size = response.header("content-length").value_or("");
    const bool fits = size.empty() || size == "0" || size == std::to_string(size_bytes);
    if (response.status / 100 != 2) {
      return fmt::format("`{}` answered {}", display_url(url), response.status);
    }
    if (fits) return {};
    return fmt::format("`{}` has {} bytes, the lock {}", display_url(url), size, size_bytes);
  } catch (const Error& error) {
    const std::string reason = told(error, url);
    const std::lock_guard lock{mutex_};
    if (is_no_answer(error)) lost_.emplace(origin, reason);
    return reason;
  }
}

void Inputs::look_for(const LockedFile& file, const std::vector<std::string>& urls) {
  std::string reasons;
  for (const std::string& url : urls) {
    const std::string reason = why_absent(url, file.size_bytes);
    if (reason.empty()) return;
    add_reason(reasons, reason);
  }
  if (urls.empty()) reasons = "no package source is known for it";
  note(file, {file.file, reasons});
}

Error Inputs::all_gone(const Error& first, const InputNeeds& needs) {
  if (gone_.empty()) {  // it is about what one of the wheels is built from
    for (std::size_t i = 1; i < first.frames().size(); ++i) {
      gone_.insert_or_assign(std::to_string(i),
                             Gone{{}, first.frames()[i], first.code() == "input-changed"});
    }
  }
  std::vector<std::pair<LockedFile, std::vector<std::string>>> open;
  const auto add = [&](const LockedFile& file, std::vector<std::string> urls) {
    if (gone_.contains(file.digest.hex()) || sources_.vendor.find(file)) return;
    for (std::string& url : snapshot_urls(file, sources_.snapshots)) urls.push_back(std::move(url));
    open.emplace_back(file, std::move(urls));
  };
  for (const LockedWheel& wheel : needs.wheels) {
    if (!store_.path_of(wheel.digest)) add(locked_file(wheel), urls_of(wheel));
  }
  for (const LockedDeb& deb : needs.debs) {
    if (is_intact(cache_ / "debs" / deb.digest.hex(), deb.size_bytes, deb.digest)) continue;
    add(locked_file(deb), sources_.deb_urls(deb));
  }
  if (needs.python) {
    const LockedPython& python = *needs.python;
    const fs::path path = interpreter_path(cache_, python.digest);
    if (!is_intact(path, python.size_bytes, python.digest)) {
      add(locked_file(python), some(sources_.python_url));
    }
  }
  Pool pool{kQuestions};
  pool.for_each(open.size(), [&](std::size_t i) { look_for(open[i].first, open[i].second); });
  return gone_error();
}

}  // namespace mlenv
