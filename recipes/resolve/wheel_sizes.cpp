#include "recipes/resolve/wheel_sizes.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/pool.hpp"
#include "recipes/resolve/locations.hpp"

namespace mlenv {
namespace {

constexpr unsigned kAtOnce = 8;  // these wait for the network, not for a processor

std::optional<std::uint64_t> positive_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || value == 0) return {};
  return value;
}

std::optional<std::uint64_t> size_by_head(const std::string& url, Http& http) {
  HttpRequest request;
  request.method = "HEAD";
  request.url = url;
  request.headers = {{"Accept-Encoding", "identity"}};
  const HttpResponse response = http.send(request);
  if (response.status != 200) return std::nullopt;
  return positive_number(response.header("content-length").value_or(""));
}

/// `Content-Range: bytes 0-0/12345` (RFC 9110, 14.4).
std::optional<std::uint64_t> size_by_range(const std::string& url, Http& http) {
  HttpRequest request;
  request.url = url;
  request.headers = {{"Range", "bytes=0-0"}, {"Accept-Encoding", "identity"}};
  request.answer_limit = 4096;
  HttpResponse response;
  try {
    response = http.send(request);
  } catch (const Error& error) {
    if (error.code() != "too-large") throw;
    return std::nullopt;  // the whole file: this server knows no ranges
  }
  if (response.status >= 400) {
    throw failure("http-status", "`{}` answers with status {}", display_url(url), response.status);
  }
  const std::string range = response.header("content-range").value_or("");
  return positive_number(std::string_view(range).substr(range.rfind('/') + 1));
}

std::uint64_t size_of(const SizeQuestion& question, Http& http) {
  constexpr std::string_view kLocal = "file://";
  if (question.url.starts_with(kLocal)) {
    return mlenv::file_size(fs::path(question.url.substr(kLocal.size())));
  }
  std::optional<std::uint64_t> size = size_by_head(question.url, http);
  if (!size) size = size_by_range(question.url, http);
  if (!size) {
    throw failure("no-size", "the size of `{}` cannot be found out", question.file)
        .because(fmt::format("`{}` tells neither a length nor a range", display_url(question.url)));
  }
  return *size;
}

}  // namespace

void ask_sizes(std::vector<SizeQuestion>& questions, Http& http, Progress& progress) {
  if (questions.empty()) return;
  Activity activity(progress, "asking for sizes", questions.size(), "wheels");
  Pool pool(std::min<unsigned>(kAtOnce, static_cast<unsigned>(questions.size())));
  pool.for_each(questions.size(), [&](std::size_t i) {
    questions[i].size_bytes = size_of(questions[i], http);
    activity.advance(1);
  });
}

void fill_sizes(WheelResolution& resolution, const Lock* previous, const fs::path& cache,
                Http& http, Progress& progress) {
  std::map<std::string, std::uint64_t> before;
  if (previous != nullptr) {
    for (const LockedWheel& one : previous->wheels) before[one.digest.hex()] = one.size_bytes;
  }
  std::vector<SizeQuestion> questions;
  std::vector<LockedWheel*> asked;
  for (LockedWheel& wheel : resolution.wheels) {
    const std::string& hex = wheel.digest.hex();
    if (wheel.size_bytes == 0) wheel.size_bytes = before[hex];
    if (wheel.size_bytes == 0) {
      if (const auto known = recall_location(cache, wheel.digest))
        wheel.size_bytes = known->size_bytes;
    }
    if (wheel.size_bytes != 0) continue;
    questions.push_back({.url = resolution.urls.at(hex), .file = wheel.file, .size_bytes = 0});
    asked.push_back(&wheel);
  }
  ask_sizes(questions, http, progress);
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i]->size_bytes = questions[i].size_bytes;
}

}  // namespace mlenv
