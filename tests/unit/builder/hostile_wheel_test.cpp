// Wheels that are odd, or lie: installed as the specification says, or refused with one message.
#include <gtest/gtest.h>

#include <map>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/tar.hpp"
#include "builder/layers.hpp"
#include "builder/wheel.hpp"
#include "images/store.hpp"
#include "tests/support/zip_builder.hpp"

namespace mlenv {
namespace {

using test::ZipBuilder;
using test::ZipHeader;
using WheelTexts = std::map<std::string, std::string>;

class HostileWheel : public testing::Test {
 protected:
  static constexpr const char* kInfo = "demo-1.0.dist-info/";
  static WheelTexts whole(WheelTexts files) {
    files.emplace(std::string(kInfo) + "WHEEL", "Wheel-Version: 1.0\n");
    files.emplace(std::string(kInfo) + "METADATA", "Name: demo\n");
    files.emplace(std::string(kInfo) + "RECORD", "");
    return files;
  }
  /// The tar's files, or under "" the error's code and last frame.
  WheelTexts installed(const std::string& zip) {
    const Digest digest = store_.put(zip);
    const WheelFile wheel{{"demo", "1.0", "demo-1.0-py3-none-any.whl", zip.size(), digest, false},
                          store_.path_of(digest).value_or("/absent")};
    try {
      const Layer layer = make_wheels_layer({wheel}, 42, "demo", store_, /*unpack=*/true);
      const std::unique_ptr<Source> blob = store_.open(layer.blob.digest);
      StringSink tar;
      gunzip(*blob, tar);
      EXPECT_EQ(Digest::of(tar.text), layer.diff_id);
      WheelTexts files;
      MemorySource source{as_bytes(tar.text)};
      read_tar(source, [&](const TarEntry& entry, Source& data) {
        if (entry.type == TarEntry::Type::file) files[entry.path] = read_all(data, 1U << 30U);
      });
      return files;
    } catch (const Error& error) {
      EXPECT_TRUE(store_.verify(false, [](std::string_view) {}).empty()) << "half made";
      return {{"", error.code() + ": " + error.frames().back()}};
    }
  }
  WheelTexts with(const WheelTexts& files) {
    ZipBuilder zip;
    for (const auto& [path, text] : whole(files)) zip.add(path, text, text.size() > 10);
    return installed(zip.finish());
  }
  /// With a member `x` of which both headers say something else.
  WheelTexts changed(const std::string& text, bool deflated, const ZipBuilder::Change& change) {
    ZipBuilder zip;
    for (const auto& [path, content] : whole({})) zip.add(path, content);
    zip.add("x", text, deflated, change, change);
    return installed(zip.finish());
  }
  static std::string site(const std::string& path) {
    return std::string(kSitePackages) + "/" + path;
  }

  TemporaryFolder folder_{temporary_root(), "hostile-wheel-"};
  Store store_{folder_.path() / "store"};
};

TEST_F(HostileWheel, NamesThatDifferInCaseAreTwoFiles) {
  const WheelTexts files = with({{"Case.py", "1"}, {"case.py", "2"}});
  EXPECT_EQ(files.at(site("Case.py")), "1");
  EXPECT_EQ(files.at(site("case.py")), "2");
}

TEST_F(HostileWheel, NamesAreTakenAsTheyAre) {
  const std::string odd = "a b,c\"d'\n\x1b[31m\xC3\xA9";
  const WheelTexts files =
      with({{odd, "x"}, {std::string(kInfo) + "RECORD", "\"" + std::string("q\"\"q") + "\",,\n"}});
  EXPECT_EQ(files.at(site(odd)), "x");
  EXPECT_NE(files.at(site(std::string(kInfo) + "RECORD")).find("\"q\"\"q\",,\n"),
            std::string::npos);
  EXPECT_EQ(with({{"caf\xE9.py", "x"}}).at(""),
            "bad-wheel: it holds a file whose name is not UTF-8");
}

TEST_F(HostileWheel, EverySchemeHasItsPlace) {
  const std::string data = "demo-1.0.data/";
  const WheelTexts files = with({{data + "purelib/a/p.py", "p"},
                                 {data + "platlib/a/l.so", "l"},
                                 {data + "headers/deep/h.h", "h"},
                                 {data + "data/etc/d.conf", "d"},
                                 {data + "scripts/sub/s", "#!/bin/sh\n"}});
  EXPECT_EQ(files.at(site("a/p.py")), "p");
  EXPECT_EQ(files.at(site("a/l.so")), "l");
  EXPECT_EQ(files.at("opt/venv/include/site/python3/demo/deep/h.h"), "h");
  EXPECT_EQ(files.at("opt/venv/etc/d.conf"), "d");
  EXPECT_EQ(files.at("opt/venv/bin/sub/s"), "#!/bin/sh\n");
  EXPECT_EQ(with({{data + "stdlib/x", "x"}}).at(""),
            "bad-wheel: `demo-1.0.data/stdlib/x` is in no known installation scheme");
  EXPECT_EQ(with({{data + "file", "x"}}).at(""), "bad-wheel: its .data folder holds a file");
  EXPECT_EQ(with({{"a.py", "1"}, {data + "purelib/a.py", "2"}}).at(""),
            "bad-wheel: two of its files land on `/" + site("a.py") + "`");
}

TEST_F(HostileWheel, ScriptsOfAllKinds) {
  const std::string scripts = "demo-1.0.data/scripts/";
  const std::string binary = std::string(
                                 "\x7f"
                                 "ELF\0\1",
                                 6) +
                             std::string(100, '\xff');
  const WheelTexts files = with({{scripts + "plain", "#!python\nbody\n"},
                                 {scripts + "gui", "#!pythonw\nbody\n"},
                                 {scripts + "arguments", "#!python -I\nbody\n"},
                                 {scripts + "windows", "#!python\r\nbody\r\n"},
                                 {scripts + "line", "#!python"},
                                 {scripts + "short", "#!py"},
                                 {scripts + "empty", ""},
                                 {scripts + "later", "\n#!python\n"},
                                 {scripts + "shell", "#!/bin/sh\n"},
                                 {scripts + "binary", binary}});
  const std::string ours = "#!/opt/venv/bin/python";
  EXPECT_EQ(files.at("opt/venv/bin/plain"), ours + "\nbody\n");
  EXPECT_EQ(files.at("opt/venv/bin/gui"), ours + "\nbody\n");
  EXPECT_EQ(files.at("opt/venv/bin/arguments"), ours + "\nbody\n");
  EXPECT_EQ(files.at("opt/venv/bin/windows"), ours + "\nbody\r\n");
  EXPECT_EQ(files.at("opt/venv/bin/line"), ours);
  EXPECT_EQ(files.at("opt/venv/bin/short"), "#!py");
  EXPECT_EQ(files.at("opt/venv/bin/empty"), "");
  EXPECT_EQ(files.at("opt/venv/bin/later"), "\n#!python\n");
  EXPECT_EQ(files.at("opt/venv/bin/shell"), "#!/bin/sh\n");
  EXPECT_EQ(files.at("opt/venv/bin/binary"), binary);
}

TEST_F(HostileWheel, RecordIsReadButNotBelieved) {
  const std::string record = std::string(kInfo) + "RECORD";
  // A wrong hash, and files that are not there: kept as the wheel says, as uv does.
  const WheelTexts files = with({{"a.py", "a"},
                                 {"b.py", "b"},
                                 {record, "a.py,sha256=wrong,9\ngone.py,,\n../../../bin/x,,\n"}});
  EXPECT_TRUE(files.contains(site("b.py")));
  const std::string& written = files.at(site(record));
  for (const char* line : {"../../../bin/x,,\n", "a.py,sha256=wrong,9\n", "gone.py,,\n"}) {
    EXPECT_NE(written.find(line), std::string::npos) << line;
  }
  EXPECT_FALSE(files.contains(site("gone.py")));
  // Who removes the package removes what RECORD names.
  for (const std::string outside : {"../../../../x", "/etc/passwd", "a/../../../../../venv2/x",
                                    "../../../../../../../../etc/passwd", "../../.."}) {
    EXPECT_EQ(with({{record, outside + ",,\n"}}).at(""),
              "bad-wheel: its RECORD names `" + outside + "`, which is outside of the environment");
  }
  EXPECT_EQ(with({{record, "a.py,b\n"}}).at(""), "bad-wheel: line 1: 2 fields where 3 are needed");
  EXPECT_EQ(with({{record, "\"a.py,,\n"}}).at(""), "bad-wheel: line 1: a quote is not closed");
}

TEST_F(HostileWheel, MustBeTheWheelThatTheLockNames) {
  ZipBuilder other;
  for (const char* name : {"METADATA", "RECORD", "WHEEL"}) {
    other.add(std::string("other-1.0.dist-info/") + name, "Wheel-Version: 1.0\n");
  }
  EXPECT_EQ(installed(other.finish()).at(""),
            "bad-wheel: its `other-1.0.dist-info` is of another package than `demo`");
  EXPECT_EQ(with({{"more-1.0.dist-info/METADATA", "x"}}).at(""),
            "bad-wheel: it holds two .dist-info folders");
  EXPECT_EQ(with({{std::string(kInfo) + "WHEEL", "Wheel-Version: 2.0\n"}}).at(""),
            "bad-wheel: its Wheel-Version is not 1.x");
  EXPECT_EQ(with({{std::string(kInfo) + "WHEEL", ""}}).at(""),
            "bad-wheel: its Wheel-Version is not 1.x");
  EXPECT_EQ(
      with({{std::string(kInfo) + "METADATA", "Metadata-Version: 2.1\nName: Other\n"}}).at(""),
      "bad-wheel: its METADATA is of `Other`, not of `demo`");
  EXPECT_EQ(with({{std::string(kInfo) + "METADATA", "Version: 1\n\nName: demo\n"}}).at(""),
            "bad-wheel: its METADATA has no name");
  ZipBuilder without;
  without.add(std::string(kInfo) + "WHEEL", "Wheel-Version: 1.0\n");
  without.add(std::string(kInfo) + "METADATA", "Name: demo\n");
  EXPECT_EQ(installed(without.finish()).at(""),
            "bad-wheel: it holds no `demo-1.0.dist-info/RECORD`");
}

TEST_F(HostileWheel, MembersThatLieAreFound) {
  const std::string text(70'000, 'x');
  for (const bool deflated : {false, true}) {
    const auto wrong_crc = changed(text, deflated, [](ZipHeader& header) { ++header.crc; });
    EXPECT_TRUE(wrong_crc.contains("")) << deflated;
    EXPECT_EQ(changed(text, deflated, {}).at(site("x")), text);
  }
  EXPECT_TRUE(changed(text, true, [](ZipHeader& header) { ++header.size_bytes; }).contains(""));
  EXPECT_TRUE(changed(text, true, [](ZipHeader& header) { --header.size_bytes; }).contains(""));
  EXPECT_TRUE(
      changed(text, true, [](ZipHeader& header) { --header.compressed_bytes; }).contains(""));
  EXPECT_TRUE(changed(text, true, [](ZipHeader& header) { header.size_bytes = 0; }).contains(""));
  // Deflated to nothing, said to be something, and the reverse.
  EXPECT_TRUE(changed("", true, [](ZipHeader& header) { header.size_bytes = 1; }).contains(""));
  EXPECT_EQ(changed("", true, {}).at(site("x")), "");
}

/// A stream with something behind its end, within the member: a gzip reader would take that for a
/// trailer.
TEST_F(HostileWheel, NothingLiesBehindAStream) {
  const std::string text(1000, 'x');
  ZipBuilder zip;
  for (const auto& [path, content] : whole({})) zip.add(path, content);
  const auto longer = [](ZipHeader& header) { header.compressed_bytes += 4; };
  zip.add("x", text, true, longer, longer);
  zip.append("more");
  EXPECT_TRUE(installed(zip.finish()).contains(""));
}

}  // namespace
}  // namespace mlenv
