// What to say when inputs are gone: all of it at once.
#include <optional>

#include "base/pool.hpp"
#include "builder/input_places.hpp"
#include "builder/inputs.hpp"
#include "recipes/resolve/interpreter.hpp"

namespace mlenv {
namespace {

constexpr unsigned kQuestions = 8;

}  // namespace

bool is_no_answer(const Error& error) {
  return error.code() == "network" || error.code() == "certificate";
}

std::string origin_of(std::string_view url) {
  return display_url(url.substr(0, url.find('/', url.find("://") + 3)));
}

std::string told(const Error& error, const std::string& url) {
  if (is_no_answer(error)) {
    return fmt::format("`{}` does not answer: {}", origin_of(url), error.frames().back());
  }
  std::string text;
  for (const std::string& frame : error.frames()) text += (text.empty() ? "" : ": ") + frame;
  return text;
}

void add_reason(std::string& reasons, const std::string& reason) {
  if (reasons.find(reason) != std::string::npos) return;
  reasons += (reasons.empty() ? "" : "; ") + reason;
}

bool is_gone(const Error& error) {
  return error.code() == "input-gone" || error.code() == "input-changed";
}

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
    std::string reason = told(error, url);
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
