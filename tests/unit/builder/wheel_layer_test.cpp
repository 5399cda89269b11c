// A made-up wheel goes through the builder; zlib, tar and the store are the oracles.
#include <gtest/gtest.h>

#include <map>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/tar.hpp"
#include "builder/layers.hpp"
#include "builder/wheel.hpp"
#include "images/store.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/zip_builder.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kWheelMetadata =
    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";

std::string zip_of(const std::map<std::string, std::string>& files) {
  test::ZipBuilder zip;
  for (const auto& [path, text] : files) zip.add(path, text, /*deflated=*/text.size() > 10);
  return zip.finish();
}

class WheelLayer : public testing::Test {
 protected:
  WheelFile add_wheel(const std::string& name, const std::map<std::string, std::string>& files,
                      bool requested = false) {
    const std::string info = name + "-1.0.dist-info/";
    std::map<std::string, std::string> all = files;
    all.emplace(info + "WHEEL", kWheelMetadata);
    all.emplace(info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n");
    std::string record;
    for (const auto& [path, text] : all)
      record += path + ",sha256=abc," + std::to_string(text.size()) + "\n";
    all.emplace(info + "RECORD", record + info + "RECORD,,\n");
    const std::string zip = zip_of(all);
    const Digest digest = store_.put(zip);
    return {{name, "1.0", name + "-1.0-py3-none-any.whl", zip.size(), digest, requested},
            blob_path(digest)};
  }

  std::map<std::string, std::string> tar_of(const Layer& layer) {
    const std::unique_ptr<Source> blob = store_.open(layer.blob.digest);
    StringSink tar;
    gunzip(*blob, tar);
    EXPECT_EQ(Digest::of(tar.text), layer.diff_id);
    EXPECT_EQ(tar.text.size(), layer.tar_bytes);
    std::map<std::string, std::string> files;
    std::string last;
    MemorySource source{as_bytes(tar.text)};
    read_tar(source, [&](const TarEntry& entry, Source& data) {
      EXPECT_EQ(entry.mtime, 42);
      EXPECT_EQ(entry.uid, 0U);
      if (entry.type != TarEntry::Type::file) return;
      EXPECT_LT(last, entry.path) << "sorted";
      last = entry.path;
      files[entry.path] = read_all(data, 1U << 30U);
    });
    return files;
  }

  fs::path blob_path(const Digest& digest) const {
    return store_.path_of(digest).value_or("/absent");
  }

  TemporaryFolder folder_{temporary_root(), "wheel-layer-"};
  Store store_{folder_.path() / "store"};
};

std::string site(const std::string& path) { return std::string(kSitePackages) + "/" + path; }

TEST_F(WheelLayer, HoldsWhatInstallingGives) {
  const std::string big(300'000, 'x');
  const WheelFile wheel = add_wheel(
      "demo",
      {{"demo/__init__.py", "print(1)\n"},
       {"demo/big.bin", big},
       {"demo/empty", ""},
       {"demo-1.0.dist-info/entry_points.txt", "[console_scripts]\ndemo-run = demo:main\n"},
       {"demo-1.0.data/scripts/tool", "#!python\nimport demo\n"},
       {"demo-1.0.data/data/share/demo.txt", "d"},
       {"demo-1.0.data/headers/demo.h", "h"},
       {"demo-1.0.data/purelib/extra.py", "e"}},
      /*requested=*/true);
  const Layer layer = make_wheels_layer({wheel}, 42, "demo", store_, /*unpack=*/true);
  const auto files = tar_of(layer);
  EXPECT_EQ(files.at(site("demo/big.bin")), big);
  EXPECT_EQ(files.at(site("demo/empty")), "");
  EXPECT_EQ(files.at(site("extra.py")), "e");
  EXPECT_EQ(files.at("opt/venv/share/demo.txt"), "d");
  EXPECT_EQ(files.at("opt/venv/include/site/python3/demo/demo.h"), "h");
  EXPECT_EQ(files.at("opt/venv/bin/tool"), "#!/opt/venv/bin/python\nimport demo\n");
  EXPECT_TRUE(files.at("opt/venv/bin/demo-run").starts_with("#!/opt/venv/bin/python\n"));
  EXPECT_EQ(files.at(site("demo-1.0.dist-info/INSTALLER")), "mlenv\n");
  EXPECT_TRUE(files.contains(site("demo-1.0.dist-info/REQUESTED")));
  const std::string& record = files.at(site("demo-1.0.dist-info/RECORD"));
  EXPECT_NE(record.find("../../../bin/demo-run,sha256="), std::string::npos);
  EXPECT_NE(record.find("../../../share/demo.txt,sha256=abc,1\n"), std::string::npos);
  EXPECT_EQ(record.find(".data/"), std::string::npos);
  const fs::path tree = store_.find_tree(layer.diff_id).value_or("/absent");
  for (const auto& [path, text] : files) EXPECT_EQ(read_file(tree / path), text) << path;
  EXPECT_TRUE(store_.verify(false, [](std::string_view) {}).empty());
}

TEST_F(WheelLayer, TheSameBytesWhetherUnpackedOrNot) {
  const WheelFile wheel = add_wheel("demo", {{"demo.py", "x = 1\n"}});
  const Layer first = make_wheels_layer({wheel}, 42, "demo", store_, /*unpack=*/true);
  const Layer second = make_wheels_layer({wheel}, 42, "demo", store_, /*unpack=*/false);
  EXPECT_EQ(first, second);
}

TEST_F(WheelLayer, SharedFilesMustBeIdentical) {
  const WheelFile one = add_wheel("one", {{"ns/shared.py", "same\n"}, {"ns/one.py", "1"}});
  const WheelFile two = add_wheel("two", {{"ns/shared.py", "same\n"}, {"ns/two.py", "2"}});
  const WheelFile three = add_wheel("three", {{"ns/shared.py", "other\n"}});
  EXPECT_NO_THROW(check_wheels_agree({one, two}, "3.11"));
  EXPECT_EQ(
      tar_of(make_wheels_layer({one, two}, 42, "both", store_, false)).at(site("ns/shared.py")),
      "same\n");
  try {
    check_wheels_agree({one, two, three}, "3.11");
    FAIL() << "a clash went unseen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "wheels-clash");
    EXPECT_NE(std::string(error.what()).find("ns/shared.py"), std::string::npos);
    EXPECT_NE(error.hint().find("`exclude: [one]`"), std::string::npos) << error.hint();
    EXPECT_EQ(error.remedy(), (Remedy{{"exclude", {"one"}}}));
    EXPECT_NE(std::string(error.what()).find("three-1.0"), std::string::npos);
  }
}

TEST_F(WheelLayer, NoFileTakesTheNameOfAFolder) {
  const WheelFile file = add_wheel("file", {{"ns/tool", "x"}});
  const WheelFile folder = add_wheel("folder", {{"ns/tool/a/b.py", "y"}, {"ns/tool.py", "z"}});
  const WheelFile both = add_wheel("both", {{"both-1.0.data/purelib/own/x", "x"}, {"own", "y"}});
  for (const auto& wheels : {std::vector{file, folder}, std::vector{folder, file}}) {
    try {
      check_wheels_agree(wheels, "3.11");
      FAIL() << "a clash went unseen";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "wheels-clash");
      EXPECT_NE(std::string(error.what()).find("ns/tool`"), std::string::npos) << error.what();
      for (const char* name : {"file-1.0", "folder-1.0"}) {
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_NO_THROW(check_wheels_agree({folder}, "3.11"));
  EXPECT_EQ(code_of([&] { check_wheels_agree({both}, "3.11"); }), "bad-wheel");
}

TEST_F(WheelLayer, NothingReplacesTheEnvironmentsOwnFiles) {
  const auto refused = [&](const std::string& name, const std::string& path) {
    const WheelFile wheel = add_wheel(name, {{path, "x"}});
    try {
      (void)make_wheels_layer({wheel}, 42, name, store_, false);
      check_wheels_agree({wheel}, "3.11");
    } catch (const Error& error) {
      return error.code();
    }
    return std::string("none");
  };
  EXPECT_EQ(refused("a", "a-1.0.data/data/lib/python3.11/site-packages/a.pth"), "bad-wheel");
  EXPECT_EQ(refused("b", "b-1.0.data/data/lib/python3.9/site-packages/b.pth"), "none");
  EXPECT_EQ(refused("c", "c-1.0.data/data/pyvenv.cfg"), "bad-wheel");
  EXPECT_EQ(refused("d", "d-1.0.data/scripts/python3.11"), "bad-wheel");
  EXPECT_EQ(refused("e", "e-1.0.data/data/lib"), "bad-wheel");
  EXPECT_EQ(refused("f", "f-1.0.data/scripts/python3-tool"), "none");
  EXPECT_EQ(refused("g", "g/.wh.other.py"), "bad-layer");
  EXPECT_EQ(refused("h", "h/latin\xE9.py"), "bad-wheel");
  const WheelFile wheel = add_wheel("i", {{"i-1.0.data/data/lib64/i.txt", "i"}});
  EXPECT_TRUE(
      tar_of(make_wheels_layer({wheel}, 42, "i", store_, false)).contains("opt/venv/lib/i.txt"));
}

TEST_F(WheelLayer, DamagedMembersAreFound) {
  const std::string name = "demo";
  WheelFile wheel = add_wheel(name, {{"demo/text.py", std::string(5000, 'a') + "unlike\n"}});
  std::string zip = read_file(wheel.path);
  // One bit of the deflate stream of the first member: behind its 30-byte header and name.
  zip[30 + std::string("demo-1.0.dist-info/METADATA").size() + 3] ^= 0x10;
  const Digest digest = store_.put(zip);
  wheel.path = blob_path(digest);
  wheel.wheel.digest = digest;
  EXPECT_THROW((void)make_wheels_layer({wheel}, 42, "demo", store_, true), Error);
  EXPECT_TRUE(store_.verify(false, [](std::string_view) {}).empty()) << "nothing half made stays";
}

TEST_F(WheelLayer, RefusesWhatIsNoWheel) {
  const Digest digest = store_.put(zip_of({{"a.txt", "x"}}));
  const Fd fd = open_file(blob_path(digest));
  const LockedWheel wheel{"a", "1", "a-1-py3-none-any.whl", 1, digest, false};
  EXPECT_THROW((void)installed_files(fd.get(), wheel), Error);
}

}  // namespace
}  // namespace mlenv
