#include "builder/inputs.hpp"

#include <cerrno>
#include <optional>

#include "base/error.hpp"
#include "recipes/resolve/interpreter.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kFileScheme = "file://";

/// Copies a local wheel (a folder of wheels that uv was told of), verified.
void copy_local(std::string_view url, const LockedWheel& wheel, int file) {
  const Fd source_fd = open_file(fs::path(url.substr(kFileScheme.size())));
  FdSource source{source_fd.get()};
  FdSink sink{file};
  VerifyingSink verified{sink, wheel.digest, wheel.size_bytes, wheel.file};
  copy(source, verified);
  verified.finish();
}

/// As against this machine's disk.
bool blames_server(const Error& error) {
  return error.code() == "network" || error.code() == "http-status" ||
         error.code() == "digest-mismatch" || error.code() == "absent";
}

bool is_intact(const fs::path& path, std::uint64_t size_bytes, const Digest& digest) {
  std::error_code error;
  if (fs::file_size(path, error) != size_bytes || error) return false;
  const Fd fd = open_file(path);
  FdSource source{fd.get()};
  Sha256 hash;
  copy(source, hash);
  return hash.finish() == digest;
}

}  // namespace

Inputs::Inputs(Store& store, Http& http, InputSources sources, fs::path cache, Progress& progress)
    : store_(store),
      http_(http),
      sources_(std::move(sources)),
      cache_(std::move(cache)),
      progress_(progress) {}

void Inputs::locate(const std::vector<LockedWheel>& wheels) {
  missing_.clear();
  for (const LockedWheel& wheel : wheels) {
    if (!store_.path_of(wheel.digest)) missing_.push_back(wheel);
  }
  if (missing_.empty()) return;
  urls_ = sources_.wheel_urls(missing_, /*anew=*/false);
  anew_ = false;
  std::optional<Error> gone;
  for (const LockedWheel& wheel : missing_) {
    if (urls_.contains(wheel.digest.hex())) continue;
    if (!gone) gone = failure("input-gone", "not everything that the lock names can still be had");
    gone->because(fmt::format("`{}` is on none of this machine's package indexes", wheel.file));
  }
  if (gone)
    throw std::move(*gone).hint(
        "lock again with `mlenv lock --upgrade`, or add the index that has it under `sources`");
}

std::string Inputs::url_of(const LockedWheel& wheel) {
  const std::lock_guard lock{mutex_};
  const auto url = urls_.find(wheel.digest.hex());
  if (url == urls_.end()) {
    throw Error{Kind::internal, "unlocated", "a wheel was asked for before it was located"};
  }
  return url->second;
}

std::string Inputs::url_anew(const LockedWheel& wheel) {
  const std::lock_guard lock{mutex_};
  if (!anew_) {
    anew_ = true;
    for (auto& [hex, url] : sources_.wheel_urls(missing_, /*anew=*/true)) urls_[hex] = url;
  }
  return urls_[wheel.digest.hex()];
}

void Inputs::fetch(const LockedWheel& wheel, const std::string& url) {
  Activity activity{progress_, "download " + wheel.file, wheel.size_bytes};
  Store::Staged staged = store_.stage();
  reserve_room(staged.fd(), wheel.size_bytes);
  while_doing("fetching `" + wheel.file + "`", [&] {
    if (url.starts_with(kFileScheme)) return copy_local(url, wheel, staged.fd());
    http_.download({url, wheel.digest, wheel.size_bytes, {}}, staged.fd(),
                   [&](std::uint64_t count) { activity.advance(count); });
  });
  staged.commit(wheel.digest);
}

fs::path Inputs::wheel(const LockedWheel& wheel) {
  if (std::optional<fs::path> path = store_.path_of(wheel.digest)) return *path;
  const std::string url = url_of(wheel);
  try {
    fetch(wheel, url);
  } catch (const Error& error) {
    if (!blames_server(error)) throw;
    const std::string other = url_anew(wheel);
    if (other == url) throw;
    fetch(wheel, other);
  }
  if (std::optional<fs::path> path = store_.path_of(wheel.digest)) return *path;
  throw failure("absent", "`{}` vanished from the store", wheel.file).hint("build again");
}

fs::path Inputs::python(const LockedPython& python) {
  fs::path path = interpreter_path(cache_, python.digest);
  if (is_intact(path, python.size_bytes, python.digest)) return path;
  while_doing("fetching `" + python.file + "`", [&] {
    fetch_interpreter(sources_.python_url, python.digest, python.size_bytes, path, http_);
  });
  return path;
}

fs::path Inputs::package(const LockedDeb& deb) {
  fs::path path = cache_ / "debs" / deb.digest.hex();
  if (is_intact(path, deb.size_bytes, deb.digest)) return path;
  make_folders(path.parent_path());
  std::optional<Error> last;
  for (const std::string& url : sources_.deb_urls(deb)) {
    try {
      AtomicFile file{path};
      http_.download({url, deb.digest, deb.size_bytes, {}}, file.fd(), {});
      file.commit(/*durable=*/false);
      return path;
    } catch (Error& error) {
      if (error.code() == "no-space") throw;
      last = std::move(error);
    }
  }
  Error gone = failure("input-gone", "`{}` {} cannot be fetched", deb.name, deb.version);
  if (last) {
    for (const std::string& frame : last->frames()) gone.because(frame);
  } else {
    gone.because("no Debian source is known for it");
  }
  throw std::move(gone).hint(
      "lock again with `mlenv lock --upgrade`: mirrors drop superseded packages");
}

}  // namespace mlenv
