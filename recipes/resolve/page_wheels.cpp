#include "recipes/resolve/page_wheels.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/file_digest.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "base/record_json.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "recipes/requirement_files.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::hours kKeptFor{30 * 24};

/// What a page's wheel was when it was fetched, and by what its server tells that it still is.
struct FetchedWheel {
  std::string digest;
  std::uint64_t bytes = 0;
  std::string etag;
  std::string modified;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("digest", self.digest);
    visit("bytes", self.bytes);
    visit("etag", self.etag);
    visit("modified", self.modified);
  }
  bool can_be_told() const { return !etag.empty() || !modified.empty(); }
};
constexpr RecordKind kFetchedWheel = {"mlenv.page-wheel/1", "a fetched wheel", ""};

void hash_file(const fs::path& path, PylockWheel& wheel) {
  if (!fs::is_regular_file(path)) throw not_a_file(path, "something else");
  wheel.digest = digest_of_file(path);
  wheel.size_bytes = fs::file_size(path);
}

/// What the server says of it now, without the bytes; a server that does not tell is no mistake.
FetchedWheel told_by_server(Http& http, const std::string& url) {
  FetchedWheel told;
  try {
    HttpRequest request;
    request.method = "HEAD";
    request.url = url;
    const HttpResponse answer = http.send(request);
    if (answer.status != 200) return told;
    const auto size = number_from<std::uint64_t>(answer.header("content-length").value_or(""));
    told.bytes = size.value_or(0);
    told.etag = answer.header("etag").value_or("");
    told.modified = answer.header("last-modified").value_or("");
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
  return told;
}

std::optional<FetchedWheel> read_fetched(const fs::path& record) {
  try {
    const auto text = read_small_file_if_exists(record, size_limit::kMachineConfig);
    if (!text) return std::nullopt;
    return read_record<FetchedWheel>(*text, record.string(), kFetchedWheel);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// What no lock has used for a month, and what a killed mlenv left.
void sweep_pages(const fs::path& folder) {
  for (const fs::path& one : list_folder(folder)) {
    const auto status = own_status(one);
    if (!status) continue;
    const auto used = std::chrono::system_clock::from_time_t(status->st_mtime);
    if (std::chrono::system_clock::now() - used < kKeptFor) continue;
    const std::string name = one.filename().string();
    const std::string_view stem = std::string_view(name).substr(0, name.find(".json"));
    if (S_ISREG(status->st_mode) && is_digest_name(stem)) {
      (void)::unlink(one.c_str());
    } else if (S_ISDIR(status->st_mode) && has_temporary_name(name, "tmp-")) {
      remove_tree(one);
    }
  }
}

void mark_used(const fs::path& path) { (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

/// The copy that is at hand, where the server says that it is still the same.
bool take_kept(const FetchedWheel& before, const FetchedWheel& now, const fs::path& folder,
               const fs::path& record, PylockWheel& wheel) {
  if (!before.can_be_told() || now.etag != before.etag || now.modified != before.modified) {
    return false;
  }
  if (now.bytes != 0 && now.bytes != before.bytes) return false;
  if (!is_digest_name(before.digest)) return false;
  const fs::path kept = folder / before.digest;
  std::error_code unknown;
  if (!fs::is_regular_file(fs::symlink_status(kept, unknown))) return false;
  hash_file(kept, wheel);
  if (wheel.digest->hex() != before.digest) return false;
  mark_used(kept);
  mark_used(record);
  wheel.url = "file://" + kept.string();
  return true;
}

}  // namespace

bool is_on_page(const Recipe& recipe, const std::string& package) {
  const std::vector<PackageIndex>& all = recipe.steering.indexes;
  return std::any_of(all.begin(), all.end(), [&](const PackageIndex& one) {
    return one.is_page && one.packages.contains(package);
  });
}

void learn_digest(PylockWheel& wheel, Http& http, const fs::path& cache, Progress& progress) {
  if (wheel.url.starts_with("file://")) return hash_file(index_path(wheel.url), wheel);
  const fs::path folder = fs::absolute(cache) / "page-wheels";
  make_own_folders(folder);
  sweep_pages(folder);
  const fs::path record = folder / (Digest::of("mlenv.page-wheel/1\n" + wheel.url).hex() + ".json");
  FetchedWheel now = told_by_server(http, wheel.url);
  const auto before = read_fetched(record);
  if (before && take_kept(*before, now, folder, record, wheel)) return;
  const Activity activity(progress, "fetch " + wheel.file, 0, "");
  const TemporaryFolder aside(folder);
  const fs::path fetched = aside.path() / "wheel";
  {
    const Fd file = open_file(fetched, O_RDWR | O_CREAT | O_EXCL);
    http.download({wheel.url, std::nullopt, std::nullopt, {}}, file.get(), {});
  }
  hash_file(fetched, wheel);
  const fs::path kept = folder / wheel.digest->hex();
  fs::rename(fetched, kept);
  wheel.url = "file://" + kept.string();
  if (!now.can_be_told()) return;
  now.digest = wheel.digest->hex();
  now.bytes = wheel.size_bytes.value_or(0);
  write_file(record, render_record(now, kFetchedWheel), /*durable=*/false);
}

}  // namespace mlenv
