#include "recipes/resolve/debian.hpp"

#include <algorithm>
#include <mutex>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/resolve/apt_choice.hpp"
#include "recipes/resolve/debian_index.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/strings.hpp"
#include "tests/unit/recipes/resolve/debian_fixture.hpp"

namespace mlenv {
namespace {

class Notes final : public Progress {
 public:
  int begin(std::string_view, std::uint64_t, std::string_view) override { return 0; }
  void advance(int, std::uint64_t) override {}
  void end(int, std::string_view) override {}
  void note(std::string_view sentence) override {
    const std::lock_guard lock{mutex_};
    notes.emplace_back(sentence);
  }
  Strings notes;

 private:
  std::mutex mutex_;
};

constexpr std::string_view kNobody = "http://127.0.0.1:1/debian";  // nobody listens on port 1

/// Resolves from one archive, that of the fixture, with a cache of its own.
class ServedArchive {
 public:
  explicit ServedArchive(std::string_view uri) : uri_(uri) {
    source.uris = {uri_ + "/"};
    source.suite = "bookworm";
    source.components = {"main"};
    source.key = std::string(fixture::kKey);
    make_folders(folder() / "releases");
    make_folders(folder() / "indexes");
    request.suite = "bookworm";
    request.recipe = "recipe.yaml";
  }

  fs::path folder() const { return cache_.path() / "debian"; }
  fs::path index_file() const {
    return folder() / "indexes" / Digest::of(fixture::kPackages).hex();
  }
  fs::path pool_file() const {
    return folder() / "pools" / (Digest::of(fixture::kPackages).hex() + "-amd64.solv");
  }
  void put_release(std::string_view text) const {
    const Digest name = Digest::of(uri_ + "/dists/bookworm");
    write_file(folder() / "releases" / (name.hex() + ".InRelease"), text, false);
  }

  std::variant<DebianResolution, Conflict> resolve(const Strings& packages) {
    request.packages.clear();
    for (const std::string& name : packages) request.packages.push_back({name, 7, 3});
    HttpOptions options;
    options.tries = 1;
    options.connect_timeout = std::chrono::milliseconds{500};
    Http http{options};
    return resolve_debian(request, {source}, http, cache_.path(), progress);
  }
  Strings names(const Strings& packages) {
    const auto answer = resolve(packages);
    Strings found;
    if (const auto* conflict = std::get_if<Conflict>(&answer)) return conflict->facts;
    for (const LockedDeb& deb : std::get<DebianResolution>(answer).debs) found.push_back(deb.name);
    return found;
  }
  /// Code of the error that `names` throws.
  std::string fault() {
    try {
      (void)names({});
      return {};
    } catch (const Error& error) {
      return error.code();
    }
  }

  DebianSource source;
  DebianRequest request;
  Notes progress;

 private:
  std::string uri_;
  TemporaryFolder cache_{temporary_root()};
};

/// Its server is away, everything is in the cache.
class OfflineArchive : public ServedArchive {
 public:
  OfflineArchive() : ServedArchive(kNobody) {
    put_release(fixture::kInRelease);
    write_file(index_file(), fixture::kPackages, false);
  }
};

/// Nothing is in the cache, a server has it all.
class OnlineArchive : public ServedArchive {
 public:
  explicit OnlineArchive(test::FaultServer& server) : ServedArchive(server.url("/debian")) {
    server.otherwise([](const test::Seen&) {
      test::Reply reply;
      reply.status = 404;
      return reply;
    });
    serve(server, "InRelease", fixture::kInRelease);
    serve(server, by_hash(), fixture::kPackages);
  }
  static std::string by_hash() {
    return "main/binary-amd64/by-hash/SHA256/" + Digest::of(fixture::kPackages).hex();
  }
  static std::string path(const std::string& file) { return "/debian/dists/bookworm/" + file; }
  static void serve(test::FaultServer& server, const std::string& file, std::string_view body) {
    test::Reply reply;
    reply.body = std::string(body);
    server.script(path(file), {reply});
  }
  static void refuse(test::FaultServer& server, const std::string& file, int status) {
    test::Reply reply;
    reply.status = status;
    server.script(path(file), {reply});
  }
};

const Strings kBase = {"apt", "base-files", "gpgv", "mawk"};

TEST(Debian, LocksTheBaseFromTheCacheWhenTheServerIsAway) {
  OfflineArchive archive;
  EXPECT_EQ(archive.names({}), kBase);
  ASSERT_EQ(archive.progress.notes.size(), 1U);
  EXPECT_EQ(
      archive.progress.notes[0],
      "`http://127.0.0.1:1/debian/dists/bookworm/InRelease` cannot be fetched; using the copy "
      "of 2020-07-11 10:16 UTC from the cache");
}

TEST(Debian, LocksEveryFactOfAPackage) {
  OfflineArchive archive;
  const auto answer = archive.resolve({"server"});
  const auto& debs = std::get<DebianResolution>(answer).debs;
  const LockedDeb wanted{
      "server",
      "1.0+security",
      "amd64",
      "pool/updates/main/s/server/server_1.0+security_amd64.deb",
      20,
      Digest::from_hex("2000000000000000000000000000000000000000000000000000000000000020")};
  EXPECT_NE(std::find(debs.begin(), debs.end(), wanted), debs.end());
  EXPECT_TRUE(std::is_sorted(debs.begin(), debs.end(), [](const LockedDeb& a, const LockedDeb& b) {
    return a.name < b.name;
  }));
}

TEST(Debian, AnswersTheSameFromAColdAndAWarmCache) {
  OfflineArchive archive;
  const Strings cold = archive.names({"server", "fallback"});
  ASSERT_TRUE(fs::exists(archive.pool_file()));
  fs::remove(archive.index_file());  // so that the answer can only come from the pool
  EXPECT_EQ(archive.names({"server", "fallback"}), cold);
}

TEST(Debian, ReadsTheIndexAgainWhenItsPoolIsDamaged) {
  OfflineArchive archive;
  const Strings cold = archive.names({"server"});
  std::string pool = read_file(archive.pool_file());
  for (const std::size_t place : {std::size_t{3}, pool.find('\n') - 1, pool.size() / 2}) {
    std::string damaged = pool;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    write_file(archive.pool_file(), damaged, false);
    EXPECT_EQ(archive.names({"server"}), cold) << place;
    EXPECT_EQ(read_file(archive.pool_file()), pool) << place;
  }
  write_file(archive.pool_file(), "", false);
  EXPECT_EQ(archive.names({"server"}), cold);
}

TEST(Debian, TrustsNoIndexThatIsNotTheSignedOne) {
  OfflineArchive archive;
  std::string other{fixture::kPackages};
  other.replace(other.find("Size: 11"), 8, "Size: 99");
  write_file(archive.index_file(), other, false);
  EXPECT_EQ(archive.fault(), "network");  // it is fetched again
}

TEST(Debian, TrustsNoCachedReleaseThatIsNotSigned) {
  OfflineArchive archive;
  archive.put_release(fixture::kStranger);
  EXPECT_EQ(archive.fault(), "network");
  archive.put_release(fixture::kRelease);
  EXPECT_EQ(archive.fault(), "network");
}

TEST(Debian, FetchesOnceAndThenAsksForTheReleaseAlone) {
  test::FaultServer server;
  OnlineArchive archive{server};
  EXPECT_EQ(archive.names({}), kBase);
  EXPECT_EQ(archive.names({}), kBase);
  EXPECT_EQ(server.seen(OnlineArchive::path("InRelease")).size(), 2U);
  EXPECT_EQ(server.seen(OnlineArchive::path(OnlineArchive::by_hash())).size(), 1U);
  EXPECT_TRUE(archive.progress.notes.empty());
}

TEST(Debian, FindsAnIndexWithoutByHash) {
  test::FaultServer server;
  OnlineArchive archive{server};
  OnlineArchive::refuse(server, OnlineArchive::by_hash(), 404);
  OnlineArchive::serve(server, "main/binary-amd64/Packages", fixture::kPackages);
  EXPECT_EQ(archive.names({}), kBase);
}

TEST(Debian, RefusesAnIndexThatIsNotTheSignedOne) {
  test::FaultServer server;
  OnlineArchive archive{server};
  OnlineArchive::refuse(server, OnlineArchive::by_hash(), 404);
  std::string other{fixture::kPackages};
  other.replace(other.find("Size: 11"), 8, "Size: 99");
  OnlineArchive::serve(server, "main/binary-amd64/Packages", other);
  EXPECT_EQ(archive.fault(), "index-mismatch");
}

TEST(Debian, KeepsToTheNewestReleaseItHasSeen) {
  test::FaultServer server;
  OnlineArchive archive{server};
  EXPECT_EQ(archive.names({}), kBase);
  OnlineArchive::serve(server, "InRelease", fixture::kOlder);
  EXPECT_EQ(archive.names({}), kBase);
  ASSERT_EQ(archive.progress.notes.size(), 1U);
  EXPECT_NE(archive.progress.notes[0].find("is older (2020-07-10 10:16 UTC) than what was seen "
                                           "before (2020-07-11 10:16 UTC)"),
            std::string::npos);
}

TEST(Debian, PassesOverOtherPeoplesArchives) {
  test::FaultServer server;
  OnlineArchive archive{server};
  archive.source.origin = "Debian";
  OnlineArchive::serve(server, "InRelease", fixture::kThirdParty);
  EXPECT_EQ(archive.fault(), "no-sources");
  ASSERT_EQ(archive.progress.notes.size(), 1U);
  EXPECT_NE(archive.progress.notes[0].find("it is not the distribution's own archive"),
            std::string::npos);
}

TEST(Debian, PassesOverAnAbsentSuiteOnlyWhereItWasGuessed) {
  test::FaultServer server;
  OnlineArchive archive{server};
  OnlineArchive::refuse(server, "InRelease", 404);
  EXPECT_EQ(archive.fault(), "http-status");
  archive.source.optional = true;
  EXPECT_EQ(archive.fault(), "no-sources");
}

TEST(Debian, PassesOverNothingThatItHasSeenBefore) {
  test::FaultServer server;
  OnlineArchive archive{server};
  archive.source.origin = "Debian";
  archive.source.optional = true;
  EXPECT_EQ(archive.names({}), kBase);
  OnlineArchive::serve(server, "InRelease", fixture::kThirdParty);
  EXPECT_EQ(archive.fault(), "release-mismatch");
  OnlineArchive::refuse(server, "InRelease", 404);
  EXPECT_EQ(archive.fault(), "http-status");
  EXPECT_TRUE(archive.progress.notes.empty());
}

TEST(Debian, RefusesAnotherSuiteOfTheSameKeys) {
  test::FaultServer server;
  OnlineArchive archive{server};
  archive.source.origin = "Deb";  // of the fixture's `Debian`, as `Debian` is of `Debian Backports`
  archive.source.suite = "bookworm-security";
  server.script("/debian/dists/bookworm-security/InRelease",
                {test::reply(200, std::string(fixture::kInRelease))});
  EXPECT_EQ(archive.fault(), "release-mismatch");
}

TEST(Debian, RefusesABadSignatureWhateverTheCacheHolds) {
  test::FaultServer server;
  OnlineArchive archive{server};
  EXPECT_EQ(archive.names({}), kBase);
  for (const std::string_view bad : {fixture::kStranger, fixture::kRelease}) {
    OnlineArchive::serve(server, "InRelease", bad);
    EXPECT_EQ(archive.fault(), "bad-signature");
  }
}

TEST(Debian, ExplainsUnknownPackages) {
  OfflineArchive archive;
  EXPECT_EQ(archive.names({"sevrer", "server=9", "mta", "server:arm64"}),
            (Strings{"recipe.yaml:7:3: there is no package `sevrer` in bookworm; did you mean "
                     "`server`?",
                     "recipe.yaml:7:3: there is no version 9 of `server` in bookworm, only "
                     "`1.0+security` and `1.0`",
                     "recipe.yaml:7:3: `mta` is not a package but can be any of `heavy-mta` and "
                     "`light-mta`: name one of them",
                     "recipe.yaml:7:3: `server:arm64` is for another architecture than the image's "
                     "amd64"}));
}

TEST(Debian, TakesAGivenVersion) {
  OfflineArchive archive;
  const auto answer = archive.resolve({"server:amd64=1.0"});
  const auto& debs = std::get<DebianResolution>(answer).debs;
  EXPECT_TRUE(std::any_of(debs.begin(), debs.end(), [](const LockedDeb& deb) {
    return deb.name == "server" && deb.version == "1.0";
  }));
}

TEST(Debian, ExplainsWhatDoesNotFitTogether) {
  OfflineArchive archive;
  EXPECT_EQ(archive.names({"light-mta", "heavy-mta"}),
            Strings{"`heavy-mta 4` conflicts with `light-mta 3`"});
}

// --- on top of what is installed -----------------------------------------------------------------

std::string stanza(std::string_view name, std::string_view version, std::string_view more = {}) {
  return fmt::format("Package: {}\nVersion: {}\nArchitecture: amd64\n{}\n", name, version, more);
}

TEST(DebianInstalled, OnlyWhatIsMissingIsTaken) {
  OfflineArchive archive;
  archive.request.installed = stanza("gpgv2", "2") + stanza("original-awk", "1", "Provides: awk\n");
  EXPECT_EQ(archive.names({"apt"}), (Strings{"apt", "base-files"}))
      << "alternatives that are there";
  *archive.request.installed += stanza("apt", "2.6.1") + stanza("base-files", "12.4+deb12u11");
  EXPECT_EQ(archive.names({"apt"}), Strings{});
  *archive.request.installed += stanza("gawk", "1:6", "Provides: awk\n");
  EXPECT_EQ(archive.names({"gawk"}), Strings{}) << "an older version took the place of a newer one";
}

TEST(DebianInstalled, AVersionChangesWhereItIsNamedOrNeeded) {
  OfflineArchive archive;
  const std::string there = stanza("libsystemd0", "100-1") + stanza("python3", "3.9") +
                            stanza("heavy-mta", "3", "Provides: mta\nConflicts: mta\n");
  archive.request.installed = there;
  const auto answer = archive.resolve({"server"});
  ASSERT_TRUE(std::holds_alternative<DebianResolution>(answer));
  Strings found;
  for (const LockedDeb& deb : std::get<DebianResolution>(answer).debs) {
    found.push_back(deb.name + " " + deb.version);
  }
  EXPECT_EQ(found, (Strings{"libsystemd0 252.39-1", "server 1.0+security"}));
  archive.request.installed = there + stanza("server", "1.0");
  EXPECT_EQ(archive.names({"python3"}), Strings{"python3"});
  EXPECT_EQ(archive.names({"server"}), (Strings{"libsystemd0", "server"}));
}

TEST(DebianInstalled, PackagesOfOneSourceMoveTogether) {
  const std::string there = stanza("libssl3", "3.0.17") + stanza("openssl", "3.0.17") +
                            stanza("ssl-doc", "3.0.17") + stanza("other", "3.0.17");
  const auto newer = [](std::string_view name, std::string_view version, std::string_view folder) {
    return stanza(name, version, fmt::format("Filename: pool/main/{}/{}.deb\n", folder, name));
  };
  const std::string index =
      newer("libssl3", "3.0.22", "o/openssl") + newer("openssl", "3.0.22+b1", "o/openssl") +
      newer("ssl-doc", "3.0.21", "o/openssl") + newer("other", "3.0.22", "o/other") +
      newer("libssl-dev", "3.0.22", "o/openssl");
  solv::Pool pool{"amd64"};
  pool.add_installed(there, index_facts(there));
  pool.add_index(index, index_facts(index));
  pool.seal();
  std::vector<solv::PackageId> installed;
  for (const solv::PackageId id : pool.packages()) {
    if (pool.is_installed(id)) installed.push_back(id);
  }
  AptChoice choice{pool};
  choice.keep(installed);
  const solv::PackageId libssl3 = choice.candidate(pool.find_name("libssl3"));
  EXPECT_EQ(pool.version(libssl3), "3.0.22");
  const auto more = choice.siblings(choice.take({libssl3}));
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(pool.text(pool.name(more[0])), "openssl");
  EXPECT_EQ(choice.take({libssl3, more[0]}).size(), 2U);
}

TEST(DebianInstalled, NothingIsRemovedAndWhatIsOnHoldStays) {
  OfflineArchive archive;
  archive.request.installed = stanza("libsystemd0", "252.39-1");
  EXPECT_EQ(archive.names({"libelogind0"}),
            Strings{"`libelogind0 246.10-1` conflicts with `libsystemd0 252.39-1` of the base"});
  archive.request.installed =
      stanza("libsystemd0", "100-1") + stanza("mta-x", "1", "Provides: mta\n");
  archive.request.held = {"libsystemd0"};
  EXPECT_EQ(archive.names({"libsystemd0"}), Strings{});
  const Strings facts = archive.names({"server"});
  ASSERT_FALSE(facts.empty());
  EXPECT_EQ(facts.back(), "the base holds `libsystemd0` at its version");
  const auto answer = archive.resolve({"server"});
  EXPECT_NE(std::get<Conflict>(answer).hint.find("never removed"), std::string::npos);
}

TEST(Debian, WantsASourceForTheArchitecture) {
  OfflineArchive archive;
  archive.source.architectures = {"arm64"};
  EXPECT_EQ(archive.fault(), "no-sources");
}

TEST(DebUrls, PutTheLikeliestFirst) {
  DebianSource main;
  main.uris = {"http://a.example/debian/", "http://b.example/debian"};
  main.suite = "bookworm";
  DebianSource updates = main;
  updates.suite = "bookworm-updates";
  DebianSource security;
  security.uris = {"http://a.example/debian-security"};
  security.suite = "bookworm-security";
  const auto deb = [](std::string path) {
    return LockedDeb{"g++", "1", "amd64", std::move(path), 1, Digest::of("")};
  };
  EXPECT_EQ(deb_urls(deb("pool/main/g/g++_1.deb"), {main, updates, security}),
            (Strings{"http://a.example/debian/pool/main/g/g%2B%2B_1.deb",
                     "http://b.example/debian/pool/main/g/g%2B%2B_1.deb",
                     "http://a.example/debian-security/pool/main/g/g%2B%2B_1.deb"}));
  EXPECT_EQ(deb_urls(deb("pool/updates/main/x_1.deb"), {main, security}).front(),
            "http://a.example/debian-security/pool/updates/main/x_1.deb");
}

}  // namespace
}  // namespace mlenv
