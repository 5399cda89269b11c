#include "recipes/resolve/solv.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/resolve/apt_choice.hpp"
#include "recipes/resolve/debian_conflict.hpp"
#include "recipes/resolve/debian_index.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"
#include "tests/unit/recipes/resolve/debian_fixture.hpp"

namespace mlenv {
namespace {

using solv::PackageId;
/// The fixture's archive, read from text or from what that was cached as.
struct PoolOfArchive {
  solv::Pool pool{"amd64"};
  std::string cached;

  PoolOfArchive() : PoolOfArchive(fixture::kPackages) {}
  explicit PoolOfArchive(std::string_view text) {
    cached = pool.add_index(text, index_facts(text));
    pool.seal();
  }

  PackageId newest(std::string_view name) const {
    const auto versions = pool.named(pool.find_name(name));
    return versions.empty() ? PackageId::none : versions.front();
  }
  Strings titles(const std::vector<PackageId>& ids) const {
    Strings all;
    for (const PackageId id : ids) {
      all.push_back(std::string(pool.text(pool.name(id))) + " " + std::string(pool.version(id)));
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  Strings taken(const Strings& asked) const {
    std::vector<PackageId> ids;
    for (const std::string& name : asked) ids.push_back(newest(name));
    return titles(AptChoice{pool}.take(ids));
  }
};

TEST(SolvVersions, AreOrderedAsDpkgDoes) {
  // Checked with `dpkg --compare-versions`.
  const Strings ascending = {"0~~",      "0~",      "0",     "1.0~rc1",  "1.0",
                             "1.0-0+b1", "1.0-1~a", "1.0-1", "1.0-1+b1", "1.0-1+deb12u1",
                             "1.0+dfsg", "1.2",     "1.10",  "1:0.1",    "2:0"};
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      const int order = solv::compare_versions(ascending[i], ascending[j]);
      EXPECT_EQ(order < 0, i < j) << ascending[i] << " and " << ascending[j];
      EXPECT_EQ(order == 0, i == j) << ascending[i] << " and " << ascending[j];
    }
  }
}

TEST(SolvFacts, AreReadFromEveryStanza) {
  const auto facts = index_facts(fixture::kPackages);
  ASSERT_EQ(facts.size(), 16U);
  EXPECT_EQ(facts[0].name, "apt");
  EXPECT_EQ(facts[0].size_bytes, 11U);
  EXPECT_EQ(facts[0].priority, solv::Priority::important);
  EXPECT_TRUE(facts[1].essential);
  EXPECT_EQ(facts[1].priority, solv::Priority::required);
  EXPECT_FALSE(facts[2].essential);
}

void expect_fixture(const PoolOfArchive& archive, const solv::Pool& pool) {
  const PackageId server = pool.named(pool.find_name("server")).front();
  const solv::Package package = pool.package(server);
  EXPECT_EQ(package.version, "1.0+security");
  EXPECT_EQ(package.architecture, "amd64");
  EXPECT_EQ(package.path, "pool/updates/main/s/server/server_1.0+security_amd64.deb");
  EXPECT_EQ(package.size_bytes, 20U);
  EXPECT_EQ(package.sha256, "2000000000000000000000000000000000000000000000000000000000000020");
  EXPECT_EQ(pool.named(pool.find_name("server")).size(), 2U);
  EXPECT_EQ(pool.find_name("no-such-thing"), solv::NameId::none);
  EXPECT_EQ(pool.packages().size(), 16U);
  const auto depends = pool.depends(server);
  ASSERT_EQ(depends.size(), 3U);
  EXPECT_EQ(pool.text(depends[0]), "libsystemd0 (>= 200)");
  EXPECT_EQ(pool.text(depends[1]), "light-mta | mta");
  EXPECT_EQ(pool.alternatives(depends[1]).size(), 2U);
  EXPECT_EQ(archive.titles(pool.providers(depends[0])),
            (Strings{"libelogind0 246.10-1", "libsystemd0 252.39-1"}));
  EXPECT_EQ(archive.titles(pool.providers(depends[2])), Strings{"python3 3.11.2-1+b1"});
  const PackageId files = pool.named(pool.find_name("base-files")).front();
  EXPECT_TRUE(pool.essential(files));
  EXPECT_EQ(pool.priority(files), solv::Priority::required);
  EXPECT_EQ(pool.priority(server), solv::Priority::optional);
}

TEST(SolvPool, AnswersFromTextAndFromTheCacheAlike) {
  const PoolOfArchive archive;
  expect_fixture(archive, archive.pool);
  solv::Pool again{"amd64"};
  ASSERT_TRUE(again.add_cached(archive.cached));
  again.seal();
  expect_fixture(archive, again);
}

TEST(SolvPool, RefusesWhatIsNoCache) {
  const PoolOfArchive archive;
  solv::Pool pool{"amd64"};
  EXPECT_FALSE(pool.add_cached(""));
  EXPECT_FALSE(pool.add_cached("nonsense that is long enough to look like something"));
  EXPECT_FALSE(pool.add_cached(std::string_view{archive.cached}.substr(0, 100)));
  pool.seal();
  EXPECT_TRUE(pool.packages().empty());
}

TEST(SolvPool, RefusesFactsThatDoNotFit) {
  solv::Pool pool{"amd64"};
  EXPECT_EQ(code_of([&] { (void)pool.add_index(fixture::kPackages, {}); }), "index-invalid");
}

TEST(AptChoice, TakesTheFirstAlternativeAndTheRealPackage) {
  const PoolOfArchive archive;
  EXPECT_EQ(archive.taken({"server"}), (Strings{"libsystemd0 252.39-1", "light-mta 3",
                                                "python3 3.11.2-1+b1", "server 1.0+security"}));
}

TEST(AptChoice, TakesNothingWhereSomethingTakenWillDo) {
  const PoolOfArchive archive;
  EXPECT_EQ(archive.taken({"server", "heavy-mta"}),
            (Strings{"heavy-mta 4", "libsystemd0 252.39-1", "python3 3.11.2-1+b1",
                     "server 1.0+security"}));
  EXPECT_EQ(archive.taken({"apt", "gpgv1"}),
            (Strings{"apt 2.6.1", "base-files 12.4+deb12u11", "gpgv1 1.4.23-1.1",
                     "mawk 1.3.4.20200120-3.1"}));
}

TEST(AptChoice, TakesTheProviderOfHigherPriority) {
  const PoolOfArchive archive;
  EXPECT_EQ(archive.taken({"base-files"}),
            (Strings{"base-files 12.4+deb12u11", "mawk 1.3.4.20200120-3.1"}));
}

TEST(AptChoice, PassesOverAnAlternativeThatCannotBeHad) {
  const PoolOfArchive archive;
  EXPECT_EQ(archive.taken({"fallback"}), (Strings{"fallback 1", "gpgv1 1.4.23-1.1"}));
}

TEST(AptChoice, KeepsToAPinnedVersion) {
  const PoolOfArchive archive;
  AptChoice choice{archive.pool};
  choice.pin(archive.pool.named(archive.pool.find_name("server")).back());
  const auto taken = choice.take({choice.candidate(archive.pool.find_name("server"))});
  EXPECT_EQ(archive.titles(taken).back(), "server 1.0");
}

TEST(SolvSolve, FindsAPlainReason) {
  const PoolOfArchive archive;
  solv::Job job;
  job.install = {archive.pool.dependency(archive.pool.find_name("broken"))};
  const solv::Outcome outcome = archive.pool.solve(job);
  ASSERT_FALSE(outcome.solved);
  EXPECT_EQ(obstacle_facts(archive.pool, outcome.obstacles, {archive.newest("broken")}),
            (Strings{"`broken 1` needs `middle`",
                     "`middle 1` needs `python3 (>= 3.12)`, which is not to be had (the newest is "
                     "3.11.2-1+b1)"}));
}

TEST(SolvSolve, FindsAConflict) {
  const PoolOfArchive archive;
  solv::Job job;
  job.exactly = {archive.newest("libelogind0"), archive.newest("libsystemd0")};
  const solv::Outcome outcome = archive.pool.solve(job);
  ASSERT_FALSE(outcome.solved);
  EXPECT_EQ(obstacle_facts(archive.pool, outcome.obstacles, job.exactly),
            Strings{"`libelogind0 246.10-1` conflicts with `libsystemd0 252.39-1`"});
}

TEST(SolvSolve, PrefersWhatIsFavoured) {
  const PoolOfArchive archive;
  for (const char* mta : {"light-mta", "heavy-mta"}) {
    solv::Job job;
    job.install = {archive.pool.dependency(archive.pool.find_name("server"))};
    job.favoured = {archive.newest(mta), archive.newest("libsystemd0")};
    const solv::Outcome outcome = archive.pool.solve(job);
    ASSERT_TRUE(outcome.solved);
    const auto& packages = outcome.packages;
    for (const PackageId id : job.favoured) {
      EXPECT_NE(std::find(packages.begin(), packages.end(), id), packages.end()) << mta;
    }
  }
}

TEST(NearPackageNames, AreNearestFirst) {
  const PoolOfArchive archive;
  EXPECT_EQ(near_package_names(archive.pool, "gpgv2"), (Strings{"gpgv", "gpgv1"}));
  EXPECT_EQ(near_package_names(archive.pool, "sevrer"), Strings{"server"});
  EXPECT_TRUE(near_package_names(archive.pool, "something-else").empty());
}

}  // namespace
}  // namespace mlenv
