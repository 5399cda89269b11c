#include "cli/cuda_index.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/login_policy.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

constexpr std::uint64_t kLongestFile = std::uint64_t{4} << 20;  // 0.1 MB or so
constexpr std::size_t kMostFiles = 500;                         // some 60 in 2026

bool is_url(std::string_view place) {
  return place.starts_with("https://") || place.starts_with("http://");
}

std::string fetched_text(const std::string& url, Http& http) {
  HttpRequest request;
  request.url = url;
  request.answer_limit = kLongestFile;
  const HttpResponse response = http.send(request);
  if (response.status == 200) return response.body;
  Error error =
      failure("http-status", "`{}` answers with status {}", display_url(url), response.status);
  if (!response.no_login.empty()) error.because(response.no_login);
  if (!response.no_login.empty() && response.status != 401) {
    error.hint(std::string(kHowToBeAsked));
  }
  throw Error(error);
}

std::string read_small(const fs::path& path) {
  if (mlenv::file_size(path) > kLongestFile) {
    throw failure("too-large", "`{}` is larger than any file of NVIDIA's index", path.string());
  }
  return read_file(path);
}

/// `what` is a name of the index; empty: the list of them.
std::string read_one(const std::string& place, const std::string& what, Http& http) {
  if (is_url(place)) return fetched_text(place + (place.ends_with('/') ? "" : "/") + what, http);
  if (!what.empty()) return read_small(fs::path(place) / what);
  std::error_code error;
  if (!fs::is_directory(place, error)) throw failure("absent", "`{}` is no folder", place);
  std::string names;
  for (const fs::path& path : list_folder(place)) names += path.filename().string() + '\n';
  return names;
}

}  // namespace

std::vector<Redistrib> read_redistributables(const std::string& place, std::string_view oldest,
                                             Http& http) {
  const std::string listing = read_one(place, "", http);
  const std::vector<std::string> names = redistrib_names(listing, oldest);
  if (names.empty() || names.size() > kMostFiles) {
    throw failure("redistrib-invalid", "`{}` is not NVIDIA's index of CUDA redistributables",
                  is_url(place) ? display_url(place) : place)
        .because(fmt::format("it lists {} named redistrib_X.Y.Z.json of CUDA {} or later",
                             counted(names.size(), "file"), oldest));
  }
  std::vector<Redistrib> found;
  found.reserve(names.size());
  for (const std::string& name : names) {
    found.push_back(parse_redistrib(read_one(place, name, http), name));
  }
  return found;
}

}  // namespace mlenv::cli
