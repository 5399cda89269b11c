#include "builder/inputs.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"
#include "tests/support/fault_server.hpp"

namespace mlenv {
namespace {

using test::FaultServer;
using test::reply;
using test::Reply;
using test::Seen;

class InputsTest : public testing::Test {
 protected:
  InputsTest() : http_(http_options()) {
    sources_.wheel_places = [this](const std::vector<LockedWheel>&, bool) { return places_; };
    sources_.deb_urls = [this](const LockedDeb&) { return deb_urls_; };
    sources_.vendor = VendorFolders{{folder_.path() / "vendor"}};
    make_folders(folder_.path() / "vendor");
  }
  static HttpOptions http_options() {
    HttpOptions options;
    options.pause = [](std::chrono::milliseconds) {};
    return options;
  }
  Inputs inputs() { return {store_, http_, sources_, folder_.path() / "cache", progress_}; }
  void put(const std::string& name, const std::string& bytes) {
    write_file(folder_.path() / "vendor" / name, bytes);
  }
  static LockedDeb deb(const std::string& name) {
    return {name,        "1.0",           "all", "pool/main/" + name + "_1.0_all.deb",
            name.size(), Digest::of(name)};
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  Http http_;
  QuietProgress progress_;
  InputSources sources_;
  WheelPlaces places_;
  std::vector<std::string> deb_urls_;
  FaultServer server_;
  const LockedWheel wheel_{.name = "six",
                           .version = "1.17.0",
                           .file = "six-1.17.0-py2.py3-none-any.whl",
                           .size_bytes = 3,
                           .digest = Digest::of("six")};
  const std::string deb_file_ = "git_1.0_all.deb";
};

TEST_F(InputsTest, NameWhatIsGone) {
  Inputs nowhere = inputs();
  const Error gone = error_of([&] { nowhere.locate({wheel_}); });
  EXPECT_EQ(gone.code(), "input-gone");
  EXPECT_NE(std::string(gone.what()).find(wheel_.file), std::string::npos);
  EXPECT_EQ(code_of([&] { nowhere.package(deb("git")); }), "input-gone");
}

TEST_F(InputsTest, AWheelIsLocatedBeforeItIsTaken) {
  Inputs early = inputs();
  EXPECT_EQ(code_of([&] { early.wheel(wheel_); }), "unlocated");
}

TEST_F(InputsTest, VendoredCopiesComeBeforeAllSources) {
  put(wheel_.file, "six");
  put(deb_file_, "git");
  deb_urls_ = {server_.url("/git")};
  Inputs from = inputs();
  from.locate({wheel_});
  EXPECT_EQ(read_file(from.wheel(wheel_)), "six");
  EXPECT_EQ(read_file(from.package(deb("git"))), "git");
  EXPECT_TRUE(server_.seen().empty());
}

TEST_F(InputsTest, ByDigestWhereAnotherFileHasTheName) {
  put(deb_file_, "git, another one");
  put(Digest::of("git").hex(), "git");
  EXPECT_EQ(read_file(inputs().package(deb("git"))), "git");
}

TEST_F(InputsTest, ADamagedCopyIsNotTaken) {
  put(wheel_.file, "sax");
  put(deb_file_, "got");
  deb_urls_ = {server_.url("/git")};
  places_.urls = {{wheel_.digest.hex(), server_.url("/six")}};
  server_.script("/git", {reply(200, "git")});
  server_.script("/six", {reply(200, "six")});
  Inputs from = inputs();
  from.locate({wheel_});
  EXPECT_EQ(read_file(from.wheel(wheel_)), "six");
  EXPECT_EQ(read_file(from.package(deb("git"))), "git");
}

TEST_F(InputsTest, ADamagedCopySaysNothingOfTheSources) {
  put(wheel_.file, "sax");
  put(deb_file_, "got");
  deb_urls_ = {server_.url("/git")};
  server_.otherwise([](const Seen&) { return reply(404); });
  Inputs from = inputs();
  from.locate({wheel_});
  EXPECT_EQ(code_of([&] { from.wheel(wheel_); }), "input-gone");
  EXPECT_EQ(code_of([&] { inputs().package(deb("git")); }), "input-gone");
}

TEST_F(InputsTest, SnapshotsAreAskedLast) {
  deb_urls_ = {server_.url("/mirror/git")};
  sources_.snapshots = {server_.url("/old/"), server_.url("/hash/{sha256}")};
  server_.otherwise([](const Seen&) { return reply(404); });
  server_.script("/old/pool/main/git_1.0_all.deb", {reply(200, "git")});
  server_.script("/hash/" + wheel_.digest.hex(), {reply(200, "six")});
  Inputs from = inputs();
  EXPECT_EQ(read_file(from.package(deb("git"))), "git");
  ASSERT_EQ(server_.seen().size(), 2U);
  EXPECT_EQ(server_.seen()[0].target, "/mirror/git");
  from.locate({wheel_});
  EXPECT_EQ(read_file(from.wheel(wheel_)), "six");
}

TEST_F(InputsTest, SnapshotUrls) {
  const LockedFile file = locked_file(deb("git"));
  const std::string hex = Digest::of("git").hex();
  EXPECT_EQ(snapshot_urls(file, {"https://a.example/", "https://b.example/{path}?x",
                                 "https://c.example/{sha256}/{file}"}),
            (std::vector<std::string>{"https://a.example/pool/main/git_1.0_all.deb",
                                      "https://b.example/pool/main/git_1.0_all.deb?x",
                                      "https://c.example/" + hex + "/git_1.0_all.deb"}));
  EXPECT_EQ(snapshot_urls(locked_file(wheel_), {"https://a.example", "https://b.example/{path}"}),
            std::vector<std::string>{});
}

TEST_F(InputsTest, AnIndexWithOtherBytesIsNamedWithBothDigests) {
  places_.others.emplace(wheel_.digest.hex(), Digest::of("other"));
  Inputs from = inputs();
  const Error changed = error_of([&] { from.locate({wheel_}); });
  EXPECT_EQ(changed.code(), "input-changed");
  for (const Digest& digest : {wheel_.digest, Digest::of("other")}) {
    EXPECT_NE(std::string(changed.what()).find(digest.str()), std::string::npos);
  }
  EXPECT_NE(std::string(changed.what()).find(wheel_.file), std::string::npos);
}

TEST_F(InputsTest, AllThatIsGoneIsNamedAtOnce) {
  sources_.deb_urls = [this](const LockedDeb& one) {
    return std::vector<std::string>{server_.url("/" + one.name)};
  };
  server_.otherwise([](const Seen&) { return reply(404); });
  server_.script("/here", {reply(200, "here")});
  server_.script("/apt", {reply(200, "opt")});
  Pool pool{2};
  Inputs from = inputs();
  const Error gone = error_of([&] {
    from.packages({deb("git"), deb("here"), deb("apt"), deb("vim")}, pool, [] {});
  });
  EXPECT_EQ(gone.code(), "input-gone");
  const std::string said = gone.what();
  for (const char* part : {"`git_1.0_all.deb`", "`vim_1.0_all.deb`", "`apt_1.0_all.deb`"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << " in " << said;
  }
  EXPECT_EQ(said.find("here_1.0"), std::string::npos) << said;
  // What was never tried is looked for, and not fetched.
  const Error more = from.all_gone(gone, {{}, {deb("git"), deb("away"), deb("here")}, {}});
  EXPECT_NE(std::string(more.what()).find("`away_1.0_all.deb`"), std::string::npos);
  EXPECT_EQ(server_.seen("/away").at(0).method, "HEAD");
  EXPECT_EQ(std::string(more.what()).find("here_1.0"), std::string::npos);
}

TEST_F(InputsTest, ChangedEverywhereIsChanged) {
  deb_urls_ = {server_.url("/git")};
  server_.script("/git", {reply(200, "got")});
  EXPECT_EQ(code_of([&] { inputs().package(deb("git")); }), "input-changed");
}

TEST_F(InputsTest, ASilentNetworkIsNotGone) {
  deb_urls_ = {"http://127.0.0.1:1/git"};
  EXPECT_EQ(code_of([&] { inputs().package(deb("git")); }), "network");
}

TEST_F(InputsTest, PartsOfABaseThatIsAnImage) {
  const Layer layer{{"tar", Digest::of("layer"), 5}, Digest::of("layer"), 0, {}};
  const LockedBase base{
      Digest::of("manifest"), {"application/json", Digest::of("config"), 6}, {layer}, {}, {}};
  put(base.config.digest.hex(), "config");
  put(base.layers[0].blob.digest.hex(), "layer");
  bool asked = false;
  sources_.provide_base = [&] { asked = true; };
  inputs().base_image(base);
  EXPECT_TRUE(store_.has(base.config.digest));
  EXPECT_TRUE(store_.has(base.layers[0].blob.digest));
  EXPECT_TRUE(asked);
}

}  // namespace
}  // namespace mlenv
