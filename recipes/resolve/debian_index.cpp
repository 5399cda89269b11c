#include "recipes/resolve/debian_index.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/own_entries.hpp"
#include "base/pool.hpp"
#include "base/size_limits.hpp"
#include "recipes/resolve/debian_control.hpp"

namespace mlenv {
namespace {

constexpr unsigned kParallelIndexes = 4;

solv::Priority priority_of(std::string_view text) {
  constexpr std::pair<std::string_view, solv::Priority> kNames[] = {
      {"optional", solv::Priority::optional},   {"required", solv::Priority::required},
      {"important", solv::Priority::important}, {"standard", solv::Priority::standard},
      {"extra", solv::Priority::extra},
  };
  for (const auto& [name, priority] : kNames) {
    if (equal_ignoring_case(name, text)) return priority;
  }
  return solv::Priority::optional;
}

void take_fact(std::string_view name, std::string_view value, solv::Facts& facts) {
  const auto is = [&](std::string_view key) { return equal_ignoring_case(name, key); };
  if (is("Package")) {
    facts.name = value;
  } else if (is("Size")) {
    std::from_chars(value.data(), value.data() + value.size(), facts.size_bytes);
  } else if (is("Priority")) {
    facts.priority = priority_of(value);
  } else if (is("Essential")) {
    facts.essential = equal_ignoring_case(value, "yes");
  } else if (is("Protected") || is("Important")) {
    facts.guarded = facts.guarded || equal_ignoring_case(value, "yes");
  }
}

fs::path cached_index(const IndexOptions& options, const PackagesIndex& index) {
  return options.cache / "indexes" / index.file.digest.hex();
}

fs::path pool_path(const IndexOptions& options, const PackagesIndex& index) {
  return options.cache / "pools" /
         fmt::format("{}-{}.solv", index.file.digest.hex(), options.architecture);
}

/// First line of a cached pool; `body` is what follows it.
std::string pool_header(const IndexOptions& options, const PackagesIndex& index,
                        std::string_view body) {
  return fmt::format("{} {} {} {}\n", solv::Pool::cache_format(), options.architecture,
                     index.file.digest.hex(), Digest::of(body).hex());
}

/// What follows the first line, when that line is right.
std::optional<std::string> cached_pool(const IndexOptions& options, const PackagesIndex& index) {
  auto bytes = read_file_if_exists(pool_path(options, index));
  if (!bytes) return std::nullopt;
  const std::size_t end = bytes->find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string_view body = std::string_view{*bytes}.substr(end + 1);
  if (!bytes->starts_with(pool_header(options, index, body))) return std::nullopt;
  bytes->erase(0, end + 1);
  return bytes;
}

std::string by_hash_url(const PackagesIndex& index) {
  const std::string folder = fs::path{index.path}.parent_path().string();
  return fmt::format("{}/{}/by-hash/SHA256/{}", index.suite_url, folder, index.file.digest.hex());
}

/// The size is the signed Release's: nothing larger is fetched.
void download(const PackagesIndex& index, const std::string& url, const fs::path& target,
              Http& http, Activity& activity) {
  AtomicFile file{target};
  Download what;
  what.url = url;
  what.digest = index.file.digest;
  what.size_bytes = index.file.size_bytes;
  http.download(what, file.fd(), [&](std::uint64_t bytes) { activity.advance(bytes); });
  file.commit(false);
}

/// Mirrors may lack by-hash files although the Release promises them.
void download_index(const PackagesIndex& index, const fs::path& target, Http& http,
                    Progress& progress) {
  Activity activity{progress, "packages of " + index.title, index.file.size_bytes, "bytes"};
  const std::string plain = index.suite_url + "/" + index.path;
  if (index.by_hash) {
    try {
      download(index, by_hash_url(index), target, http, activity);
      return;
    } catch (const Error& error) {
      if (error.code() != "http-status") throw;
    }
  }
  try {
    download(index, plain, target, http, activity);
  } catch (const Error& error) {
    if (error.code() != "digest-mismatch") throw;
    Error mismatch = failure("index-mismatch", "`{}` is not what the signed Release file says",
                             display_url(plain));
    for (const std::string& frame : error.frames()) mismatch.because(frame);
    throw std::move(mismatch).hint("the mirror may be in the middle of an update: try again soon");
  }
}

bool is_cached(const PackagesIndex& index, const fs::path& path) {
  const auto bytes = read_file_if_exists(path);
  return bytes && bytes->size() == index.file.size_bytes && Digest::of(*bytes) == index.file.digest;
}

std::string packages_text(const fs::path& path) {
  const Fd fd = open_file(path);
  FdSource compressed{fd.get()};
  std::string text;
  FunctionSink limited([&](ByteView data) {
    if (text.size() + data.size() > size_limit::kPackagesFile) {
      throw failure("too-large", "an index of packages unpacks to more than {} bytes",
                    size_limit::kPackagesFile);
    }
    text += as_text(data);
  });
  decompress(compressed, limited);
  return text;
}

void add_parsed(const PackagesIndex& index, const IndexOptions& options, const solv::Origin& origin,
                solv::Pool& pool) {
  const std::string text = packages_text(cached_index(options, index));
  const std::string body = pool.add_index(text, index_facts(text), origin);
  make_own_folders(options.cache / "pools");
  write_file(pool_path(options, index), pool_header(options, index, body) + body, false);
}

}  // namespace

std::vector<solv::Facts> index_facts(std::string_view packages) {
  std::vector<solv::Facts> all;
  each_stanza(packages, [&](const ControlStanza& stanza) {
    solv::Facts facts;
    stanza.each(
        [&](std::string_view name, std::string_view value) { take_fact(name, value, facts); });
    if (!facts.name.empty()) all.push_back(facts);
  });
  return all;
}

void load_indexes(const std::vector<PackagesIndex>& indexes, const IndexOptions& options,
                  Http& http, Progress& progress, solv::Pool& pool) {
  make_folders(options.cache / "indexes");
  std::vector<std::optional<std::string>> cached(indexes.size());
  {
    mlenv::Pool threads{kParallelIndexes};
    threads.for_each(indexes.size(), [&](std::size_t i) {
      cached[i] = cached_pool(options, indexes[i]);
      const fs::path path = cached_index(options, indexes[i]);
      if (!cached[i] && !is_cached(indexes[i], path)) {
        download_index(indexes[i], path, http, progress);
      }
    });
  }
  for (std::size_t i = 0; i < indexes.size(); ++i) {  // in order: ids decide between equals
    const std::string body = std::move(cached[i]).value_or("");
    const solv::Origin origin{static_cast<int>(i), indexes[i].priority};
    if (pool.add_cached(body, origin)) continue;
    while_doing("reading the packages of " + indexes[i].title, [&] {
      const fs::path path = cached_index(options, indexes[i]);
      if (!is_cached(indexes[i], path)) download_index(indexes[i], path, http, progress);
      add_parsed(indexes[i], options, origin, pool);
    });
  }
  pool.seal();
}

}  // namespace mlenv
