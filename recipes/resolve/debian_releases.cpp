#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.hpp"
#include "base/login_policy.hpp"
#include "base/own_entries.hpp"
#include "base/pool.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/resolve/debian_index.hpp"
#include "recipes/resolve/release_signature.hpp"

namespace mlenv {
namespace {

constexpr unsigned kParallelReleases = 4;

/// One suite at one address.
struct Suite {
  const DebianSource* source = nullptr;
  std::string url;  ///< `…/dists/bookworm`
  std::string what() const { return "`" + display_url(url + "/InRelease") + "`"; }
};

/// What came of fetching an InRelease.
struct Fetched {
  std::optional<std::string> text;
  bool absent = false;  ///< the server says that there is no such suite
  Error fault{Kind::internal, "network", "not tried"};  ///< when there is no text
};

std::string without_trailing_slashes(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

std::vector<Suite> usable_suites(const std::vector<DebianSource>& sources,
                                 const std::string& architecture) {
  std::vector<Suite> suites;
  for (const DebianSource& source : sources) {
    const auto& known = source.architectures;
    const bool usable =
        known.empty() || std::find(known.begin(), known.end(), architecture) != known.end();
    if (!usable) continue;
    for (const std::string& uri : source.uris) {
      suites.push_back({&source, without_trailing_slashes(uri) + "/dists/" + source.suite});
    }
  }
  return suites;
}

Fetched fetch_release(const Suite& suite, Http& http) {
  Fetched fetched;
  try {
    HttpRequest request;
    request.url = suite.url + "/InRelease";
    request.answer_limit = size_limit::kRelease;
    HttpResponse response = http.send(request);
    if (response.status >= 200 && response.status < 300) {
      fetched.text = std::move(response.body);
      return fetched;
    }
    fetched.absent = response.status == 404 || response.status == 410;
    fetched.fault = failure("http-status", "cannot fetch {}", suite.what())
                        .because(fmt::format("the server answers {}", response.status));
    if (!response.no_login.empty()) fetched.fault.because(response.no_login);
    if (fetched.absent && !response.no_login.empty()) {
      fetched.fault.hint(std::string(kHowToBeAsked));
    } else if (fetched.absent) {
      fetched.fault.hint(
          "this archive does not have the suite; old releases move to another archive: name one "
          "that has it under `sources` in the recipe");
    }
  } catch (const Error& error) {
    fetched.fault = error;
  }
  return fetched;
}

class Releases {
 public:
  Releases(const IndexOptions& options, Progress& progress)
      : options_(options), progress_(progress), folder_(options.cache / "releases") {}

  /// Loads every keyring that the suites need. Checking the archive's own takes longer than
  /// fetching a Release: to be called while those are on their way.
  void load_keyrings(const std::vector<Suite>& suites) {
    for (const Suite& suite : suites) (void)keyring(*suite.source);
  }
  /// nullopt when the suite is passed over.
  std::optional<Release> accept(const Suite& suite, Fetched fetched);

 private:
  const Keyring& keyring(const DebianSource& source);
  std::optional<Release> verified(const Suite& suite, const std::string& text);
  std::optional<Release> from_cache(const Suite& suite);
  std::optional<Release> instead(const Suite& suite, Fetched fetched);
  void refuse_if_known(const Suite& suite);
  bool is_other_peoples(const Suite& suite, const std::string& text) const;
  void pass_over(const Suite& suite, std::string_view why) {
    progress_.note(fmt::format("passing over {}: {}", suite.what(), why));
  }
  ReleaseChecks checks_of(const Suite& suite) const {
    return {suite.source->suite, options_.now, suite.source->check_valid_until};
  }
  fs::path cached_path(const Suite& suite) const {
    return folder_ / (Digest::of(suite.url).hex() + ".InRelease");
  }

  const IndexOptions& options_;
  Progress& progress_;
  fs::path folder_;
  std::map<std::string, Keyring> keyrings_;  ///< by path or key text; empty: the archive's
};

const Keyring& Releases::keyring(const DebianSource& source) {
  const std::string name = source.key.empty() ? source.signed_by.string() : source.key;
  if (const auto known = keyrings_.find(name); known != keyrings_.end()) return known->second;
  if (name.empty()) {
    Keyring keys = archive_keyring(options_.distribution, options_.root);
    return keyrings_.emplace(name, std::move(keys)).first->second;
  }
  Keyring keyring;
  if (source.key.empty() && fs::is_directory(source.signed_by)) {
    for (const fs::path& file : list_folder(source.signed_by)) keyring.add_file(file);
  } else if (source.key.empty()) {
    keyring.add_file(source.signed_by);
  } else {
    keyring.add_text(source.key, "the source's own Signed-By");
  }
  return keyrings_.emplace(name, std::move(keyring)).first->second;
}

/// Whether a Release that the archive's keys did not sign belongs to somebody whom apt trusts here
/// and who does not claim to be the distribution.
bool Releases::is_other_peoples(const Suite& suite, const std::string& text) const {
  const DebianSource& source = *suite.source;
  if (source.origin.empty() || !source.signed_by.empty() || !source.key.empty()) return false;
  try {
    const std::string signed_text =
        trusted_keyring(options_.root).verified_text(text, suite.what());
    return parse_release(signed_text, suite.what()).origin != source.origin;
  } catch (const Error&) {
    return false;
  }
}

/// nullopt when the Release is of another origin than the source has to have.
std::optional<Release> Releases::verified(const Suite& suite, const std::string& text) {
  const std::string what = suite.what();
  Release release;
  try {
    release = parse_release(keyring(*suite.source).verified_text(text, what), what);
  } catch (const Error& error) {
    if (error.code() == "bad-signature" && is_other_peoples(suite, text)) return std::nullopt;
    throw;
  }
  const std::string& origin = suite.source->origin;
  if (origin.empty() || release.origin == origin) return release;
  // `Debian Backports` in the place of `Debian`: the distribution's keys sign other suites, too,
  // and who answers with one of these would have the right one passed over.
  if (release.origin.starts_with(origin)) check_release(release, checks_of(suite), what);
  return std::nullopt;
}

std::optional<Release> Releases::from_cache(const Suite& suite) {
  const auto text = read_small_file_if_exists(cached_path(suite), size_limit::kRelease);
  if (!text) return std::nullopt;
  try {
    return verified(suite, *text);
  } catch (const Error&) {
    return std::nullopt;  // damaged, or its key has gone: as good as absent
  }
}

/// What there is when nothing could be fetched.
std::optional<Release> Releases::instead(const Suite& suite, Fetched fetched) {
  std::optional<Release> cached = from_cache(suite);
  if (fetched.absent && suite.source->optional && !cached) {
    pass_over(suite, "there is no such suite");
    return std::nullopt;
  }
  if (fetched.absent && cached) {
    fetched.fault.because(
        fmt::format("the suite was there before, of {}", render_time(cached->date)));
  }
  if (fetched.absent || !cached) throw std::move(fetched.fault);
  // Who keeps the archive's answers back must not hold this machine at an old state for ever.
  try {
    check_release(*cached, checks_of(suite), suite.what());
  } catch (const Error& error) {
    for (const std::string& frame : error.frames()) fetched.fault.because(frame);
    throw std::move(fetched.fault);
  }
  progress_.note(fmt::format("{} cannot be fetched; using the copy of {} from the cache",
                             suite.what(), render_time(cached->date)));
  return cached;
}

/// Whoever can answer in the archive's place must not get its suite, with corrections of security,
/// left out by somebody else's signature.
void Releases::refuse_if_known(const Suite& suite) {
  const std::optional<Release> cached = from_cache(suite);
  if (!cached) return;
  throw failure("release-mismatch", "{} is another archive than before", suite.what())
      .because(fmt::format("it was the distribution's own, of {}", render_time(cached->date)))
      .hint(fmt::format("use another mirror; if this one has changed hands, remove `{}`",
                        cached_path(suite).string()));
}

std::optional<Release> Releases::accept(const Suite& suite, Fetched fetched) {
  if (!fetched.text) return instead(suite, std::move(fetched));
  std::optional<Release> fresh = verified(suite, *fetched.text);
  if (!fresh) {
    refuse_if_known(suite);
    pass_over(suite, "it is not the distribution's own archive");
    return std::nullopt;
  }
  check_release(*fresh, checks_of(suite), suite.what());
  const auto known = read_small_file_if_exists(cached_path(suite), size_limit::kRelease);
  if (known == fetched.text) return fresh;
  std::optional<Release> cached = from_cache(suite);
  if (cached && cached->date > fresh->date) {
    check_release(*cached, checks_of(suite), suite.what());
    progress_.note(fmt::format("{} is older ({}) than what was seen before ({}): using that one",
                               suite.what(), render_time(fresh->date), render_time(cached->date)));
    return cached;
  }
  make_own_folders(folder_);
  write_file(cached_path(suite), *fetched.text, false);
  return fresh;
}

void add_suite_indexes(const Suite& suite, const Release& release, const IndexOptions& options,
                       Progress& progress, std::vector<PackagesIndex>& out) {
  std::vector<std::string> architectures{options.architecture};
  if (release.separate_all) architectures.emplace_back("all");
  for (const std::string& component : suite.source->components) {
    bool any = false;
    for (const std::string& architecture : architectures) {
      const auto* file = release.packages(component, architecture);
      if (file == nullptr) continue;
      any = true;
      const auto same = [&](const PackagesIndex& other) { return other.file == file->second; };
      if (std::any_of(out.begin(), out.end(), same)) continue;
      out.push_back({suite.url,
                     suite.source->suite + " " + component,
                     file->first,
                     file->second,
                     release.by_hash,
                     {suite.source->suite, release.suite, release.codename},
                     release.priority()});
    }
    if (!any) {
      progress.note(fmt::format("{} has no component `{}` for {}", suite.what(), component,
                                options.architecture));
    }
  }
}

}  // namespace

std::vector<PackagesIndex> find_indexes(const std::vector<DebianSource>& sources,
                                        const IndexOptions& options, Http& http,
                                        Progress& progress) {
  const std::vector<Suite> suites = usable_suites(sources, options.architecture);
  std::vector<Fetched> fetched(suites.size());
  Releases releases{options, progress};
  {
    Activity activity{progress, "fetching package lists", suites.size(), "lists"};
    mlenv::Pool threads{kParallelReleases};
    threads.for_each(suites.size() + 1, [&](std::size_t i) {
      if (i == 0) {
        releases.load_keyrings(suites);
      } else {
        fetched[i - 1] = fetch_release(suites[i - 1], http);
        activity.advance(1);
      }
    });
  }
  std::vector<PackagesIndex> found;
  bool has_suite = false;
  for (std::size_t i = 0; i < suites.size(); ++i) {
    const auto release = releases.accept(suites[i], std::move(fetched[i]));
    if (!release) continue;
    const std::size_t before = found.size();
    add_suite_indexes(suites[i], *release, options, progress, found);
    has_suite = has_suite || (suites[i].source->suite == options.suite && found.size() > before);
  }
  // The same order whatever the order of the sources: ids in the pool follow from it.
  std::sort(found.begin(), found.end(), [](const PackagesIndex& a, const PackagesIndex& b) {
    return std::tie(a.title, a.path, a.file.digest) < std::tie(b.title, b.path, b.file.digest);
  });
  if (has_suite) return found;
  throw failure("no-sources", "none of the package sources has the suite `{}` for {}",
                options.suite, options.architecture)
      .hint(fmt::format("write `sources: {{debian: [{{uri: http://MIRROR/{}, suite: {}}}]}}` into "
                        "the recipe",
                        options.distribution, options.suite));
}

}  // namespace mlenv
