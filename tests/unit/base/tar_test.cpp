#include "base/tar.hpp"

#include <algorithm>
#include <clocale>

#include <gtest/gtest.h>

#include "base/deflate.hpp"
#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/pool.hpp"
#include "tests/support/child.hpp"
#include "tests/support/deb_builder.hpp"
#include "tests/support/generator.hpp"

namespace mlenv {
namespace {

struct Item {
  TarEntry entry;
  std::string content;
};

Item file_item(std::string path, std::string content) {
  Item item;
  item.entry.path = std::move(path);
  item.entry.size_bytes = content.size();
  item.content = std::move(content);
  return item;
}

Item other(TarEntry::Type type, std::string path, std::string link = {}) {
  Item item;
  item.entry.type = type;
  item.entry.path = std::move(path);
  item.entry.link = std::move(link);
  return item;
}

std::string tar_of(const std::vector<Item>& items) {
  std::string tar;
  for (const Item& item : items) {
    tar += as_text(tar_header(item.entry));
    tar += item.content;
    tar.append(tar_padding(item.content.size()), '\0');
  }
  return tar += as_text(tar_end());
}

std::vector<Item> read_items(std::string_view tar) {
  MemorySource source{as_bytes(tar)};
  std::vector<Item> items;
  read_tar(source, [&](const TarEntry& entry, Source& data) {
    items.push_back({entry, read_all(data, 1U << 30U)});
  });
  return items;
}

std::string error_code(std::string_view tar) {
  try {
    (void)read_items(tar);
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

/// One of everything that a header can say, at both sides of each limit.
std::vector<Item> zoo() {
  std::vector<Item> items;
  items.push_back(file_item("plain", "hello\n"));
  items.push_back(file_item("empty", ""));
  items.push_back(file_item("na\xC3\xAFve/\xE6\x97\xA5\xE6\x9C\xAC", "utf-8"));
  items.push_back(file_item("e\xCC\x81", "decomposed"));
  items.push_back(file_item(std::string(100, 'a'), "100"));
  items.push_back(file_item(std::string(101, 'b'), "101"));
  items.push_back(file_item(std::string(155, 'p') + "/" + std::string(100, 'n'), "256 split"));
  items.push_back(file_item(std::string(156, 'p') + "/n", "prefix too long"));
  items.push_back(file_item("d/" + std::string(101, 'n'), "name too long"));
  items.push_back(
      file_item(std::string(120, 'u') + "\xC3\xBC/" + std::string(120, 'v'), "long utf-8"));
  items.push_back(file_item("new\nline", "x"));
  items.push_back(other(TarEntry::Type::folder, "folder"));
  items.push_back(other(TarEntry::Type::folder, std::string(99, 'f')));
  items.push_back(other(TarEntry::Type::folder, std::string(100, 'g')));
  items.push_back(other(TarEntry::Type::folder, std::string(60, 'h') + "/" + std::string(60, 'i')));
  items.push_back(other(TarEntry::Type::symlink, "link", "../target of \xC3\xA4"));
  items.push_back(other(TarEntry::Type::symlink, "link100", std::string(100, 'l')));
  items.push_back(other(TarEntry::Type::symlink, "link101", std::string(101, 'm')));
  items.push_back(other(TarEntry::Type::symlink, "dots", "./a//b/../c/"));
  items.push_back(other(TarEntry::Type::hardlink, "hard", "plain"));
  items.push_back(other(TarEntry::Type::hardlink, "hard long", std::string(101, 'b')));
  items.push_back(other(TarEntry::Type::fifo, "fifo"));
  items.push_back(other(TarEntry::Type::char_device, "null"));
  items.back().entry.device_major = 1;
  items.back().entry.device_minor = 3;
  items.push_back(other(TarEntry::Type::block_device, "disk"));
  items.back().entry.device_major = 259;
  items.back().entry.device_minor = 0xFFFFF;
  items.push_back(file_item("setuid", "x"));
  items.back().entry.mode = 04755;
  items.push_back(other(TarEntry::Type::folder, "sticky"));
  items.back().entry.mode = 01777;
  items.push_back(file_item("ids", "x"));
  items.back().entry.uid = 2097151;
  items.back().entry.gid = 65534;
  items.push_back(file_item("large ids", "x"));
  items.back().entry.uid = 2097152;
  items.back().entry.gid = 4294967294;
  items.push_back(file_item("time", "x"));
  items.back().entry.mtime = 1'700'000'000;
  items.push_back(file_item("late", "x"));
  items.back().entry.mtime = 8'589'934'592;
  items.push_back(file_item("early", "x"));
  items.back().entry.mtime = -86'400;
  items.push_back(file_item("capable", "x"));
  items.back().entry.xattrs["security.capability"] = std::string("\1\0\0\2\0\4=\n\0\0", 10);
  items.back().entry.xattrs["user.note"] = "text";
  return items;
}

void expect_same(const TarEntry& found, const TarEntry& expected) {
  EXPECT_EQ(found.type, expected.type) << expected.path;
  EXPECT_EQ(found.path, expected.path);
  EXPECT_EQ(found.link, expected.link) << expected.path;
  EXPECT_EQ(found.mode, expected.mode) << expected.path;
  EXPECT_EQ(found.uid, expected.uid) << expected.path;
  EXPECT_EQ(found.gid, expected.gid) << expected.path;
  EXPECT_EQ(found.size_bytes, expected.size_bytes) << expected.path;
  EXPECT_EQ(found.mtime, expected.mtime) << expected.path;
  EXPECT_EQ(found.device_major, expected.device_major) << expected.path;
  EXPECT_EQ(found.device_minor, expected.device_minor) << expected.path;
  EXPECT_EQ(found.xattrs, expected.xattrs) << expected.path;
}

void expect_zoo(const std::vector<Item>& found) {
  const std::vector<Item> expected = zoo();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expect_same(found[i].entry, expected[i].entry);
    EXPECT_EQ(found[i].content, expected[i].content) << expected[i].entry.path;
  }
}

TEST(Tar, LibarchiveReadsWhatWeWrite) { expect_zoo(read_items(tar_of(zoo()))); }

TEST(Tar, NamesStayBytesInEveryLocale) {
  for (const char* locale : {"C", "C.UTF-8", "en_US.ISO-8859-1"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;  // NOLINT(concurrency-mt-unsafe)
    expect_zoo(read_items(tar_of(zoo())));
    (void)std::setlocale(LC_ALL, "C");  // NOLINT(concurrency-mt-unsafe)
  }
}

TEST(Tar, BytesStayTheSame) {
  EXPECT_EQ(Digest::of(tar_of(zoo())).hex(),
            "e93e0cd5c3910770336a0dad62d0d4165c136ad3af1fcc9f1e2fb9f86c2b2fb5");
}

TEST(Tar, PaxRecordsAreWrittenOnlyWhereNeeded) {
  std::vector<std::string> with_pax;
  for (const Item& item : zoo()) {
    const std::size_t size = tar_header(item.entry).size();
    EXPECT_EQ(size % kTarBlock, 0U);
    if (size > kTarBlock) with_pax.push_back(item.entry.path.substr(0, 9));
  }
  EXPECT_EQ(with_pax, (std::vector<std::string>{"bbbbbbbbb", "ppppppppp", "d/nnnnnnn", "uuuuuuuuu",
                                                "ggggggggg", "link101", "hard long", "large ids",
                                                "late", "early", "capable"}));
}

TEST(Tar, PaxRecordsCountTheirOwnLength) {
  // Lengths around the step from two to three digits.
  for (std::size_t size = 60; size < 130; ++size) {
    TarEntry entry;
    entry.path = "x";
    entry.xattrs["user.k"] = std::string(size, 'v');
    MemorySource source{{}};
    const std::vector<Item> items = read_items(tar_of({{entry, ""}}));
    ASSERT_EQ(items.at(0).entry.xattrs.at("user.k").size(), size);
  }
}

TEST(Tar, LargeFilesUsePaxSizes) {
  TarEntry entry;
  entry.path = "large";
  entry.size_bytes = 077777777777;
  EXPECT_EQ(tar_header(entry).size(), kTarBlock);
  ++entry.size_bytes;
  const Bytes header = tar_header(entry);
  EXPECT_NE(as_text(header).find("19 size=8589934592\n"), std::string_view::npos);
}

TEST(Tar, PythonReadsWhatWeWrite) {
  const std::string listing = test::python(R"(
import io, sys, tarfile
t = tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()), errors="surrogateescape")
for m in t:
    data = t.extractfile(m).read() if m.isreg() else b""
    x = sorted(k[13:] for k in m.pax_headers if k.startswith("SCHILY.xattr."))
    dev = (m.devmajor, m.devminor) if m.isdev() and not m.isfifo() else (0, 0)
    print(ascii([m.type.decode(), m.name, m.linkname, m.mode, m.uid, m.gid, m.size, int(m.mtime),
          dev[0], dev[1], data.decode(), x]))
)",
                                           tar_of(zoo()));
  std::string script = "rows = []\n";
  const std::string_view flags = "0521346";  // in the order of Type: file, folder, symlink, ...
  for (const Item& item : zoo()) {
    const TarEntry& entry = item.entry;
    auto quoted = [](const std::string& text) {
      std::string hex;
      for (const char c : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
      return "bytes.fromhex('" + hex + "').decode()";
    };
    std::string xattrs;
    for (const auto& [name, value] : entry.xattrs) xattrs += "'" + name + "',";
    script += fmt::format("rows.append(['{}',{},{},{},{},{},{},{},{},{},{},[{}]])\n",
                          flags[static_cast<std::size_t>(entry.type)], quoted(entry.path),
                          quoted(entry.link), entry.mode, entry.uid, entry.gid, entry.size_bytes,
                          entry.mtime, entry.device_major, entry.device_minor, quoted(item.content),
                          xattrs);
  }
  EXPECT_EQ(listing, test::python(script + "for r in rows: print(ascii(r))\n"));
}

TEST(Tar, GnuTarReadsWhatWeWrite) {
  const std::vector<Item> items = zoo();
  const std::string listing =
      test::output_of({"tar", "--list", "--verbose", "--numeric-owner", "--utc", "--full-time",
                       "--quoting-style=escape", "--file=-"},
                      tar_of(items));
  EXPECT_EQ(static_cast<std::size_t>(std::count(listing.begin(), listing.end(), '\n')),
            items.size());
  for (const std::string line : {
           "-rw-r--r-- 0/0               6 1970-01-01 00:00:00 plain\n",
           "crw-r--r-- 0/0             1,3 1970-01-01 00:00:00 null\n",
           "-rwsr-xr-x 0/0               1 1970-01-01 00:00:00 setuid\n",
           "drwxrwxrwt 0/0               0 1970-01-01 00:00:00 sticky/\n",
           "-rw-r--r-- 2097152/4294967294 1 1970-01-01 00:00:00 large ids\n",
           "-rw-r--r-- 0/0                1 2242-03-16 12:56:32 late\n",
           "-rw-r--r-- 0/0                1 1969-12-31 00:00:00 early\n",
           "hrw-r--r-- 0/0                0 1970-01-01 00:00:00 hard link to plain\n",
       }) {
    // Columns widen with the largest owner seen so far.
    auto squeezed = [](std::string text) {
      text.erase(std::unique(text.begin(), text.end(),
                             [](char a, char b) { return a == ' ' && b == ' '; }),
                 text.end());
      return text;
    };
    EXPECT_NE(squeezed(listing).find(squeezed(line)), std::string::npos) << line << listing;
  }
}

TEST(Tar, ReadsDialectsOfPythonAndGnu) {
  for (const std::string format : {"USTAR", "GNU", "PAX"}) {
    const std::string tar = test::python(R"(
import io, sys, tarfile
t = tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.)" +
                                         format + R"(_FORMAT)
def add(name, data=b"", **k):
    m = tarfile.TarInfo(name); m.size = len(data)
    for a, v in k.items(): setattr(m, a, v)
    t.addfile(m, io.BytesIO(data))
add("./", type=tarfile.DIRTYPE)
add("./a/b", b"content", uid=1234, mtime=5.5)
add("/absolute//x", b"y")
add("d" * 90 + "/" + "n" * 90, b"long")
add("caf\u00e9" , b"u")
add("e\u0301", b"n")
add("l", type=tarfile.SYMTYPE, linkname="\u00e9/../x")
add("h", type=tarfile.LNKTYPE, linkname="./a/b")
t.close())");
    const std::vector<Item> items = read_items(tar);
    ASSERT_EQ(items.size(), 8U) << format;
    EXPECT_EQ(items[0].entry.path, ".");
    EXPECT_EQ(items[1].entry.path, "a/b");
    EXPECT_EQ(items[1].content, "content");
    EXPECT_EQ(items[1].entry.uid, 1234U);
    EXPECT_EQ(items[1].entry.mtime, 5);
    EXPECT_EQ(items[2].entry.path, "absolute/x");
    EXPECT_EQ(items[3].entry.path, std::string(90, 'd') + "/" + std::string(90, 'n'));
    EXPECT_EQ(items[4].entry.path, "caf\xC3\xA9");
    EXPECT_EQ(items[5].entry.path, "e\xCC\x81");
    EXPECT_EQ(items[6].entry.link, "\xC3\xA9/../x");
    EXPECT_EQ(items[7].entry.link, "a/b");
    EXPECT_EQ(items[7].entry.type, TarEntry::Type::hardlink);
  }
}

TEST(Tar, RefusesPathsThatLeadOut) {
  EXPECT_EQ(error_code(tar_of({file_item("../x", "")})), "bad-tar");
  EXPECT_EQ(error_code(tar_of({file_item("a/../b", "")})), "bad-tar");
  EXPECT_EQ(error_code(tar_of({other(TarEntry::Type::hardlink, "x", "../y")})), "bad-tar");
  EXPECT_EQ(error_code(tar_of({other(TarEntry::Type::symlink, "x", "../y")})), "none");
  EXPECT_EQ(error_code(tar_of({file_item("..x/...", "")})), "none");
}

TEST(Tar, RefusesDamage) {
  const std::string tar = tar_of({file_item("a", test::prose(5000, 1)), file_item("b", "x")});
  EXPECT_EQ(error_code(tar), "none");
  EXPECT_EQ(error_code(tar.substr(0, 3000)), "bad-tar");
  EXPECT_EQ(error_code(tar.substr(0, 200)), "bad-tar");
  std::string broken = tar;
  broken[10] = 'z';
  EXPECT_EQ(error_code(broken), "bad-tar");
  EXPECT_EQ(error_code(test::noise(10'000, 2)), "bad-tar");
  EXPECT_EQ(error_code(std::string(1024, '\0')), "none");
}

TEST(Tar, DataNeedNotBeRead) {
  const std::string tar = tar_of({file_item("a", test::noise(300'000, 3)), file_item("b", "next")});
  MemorySource source{as_bytes(tar)};
  std::string last;
  read_tar(source, [&](const TarEntry& entry, Source& data) {
    if (entry.path == "b") last = read_all(data, 100);
  });
  EXPECT_EQ(last, "next");
}

// NOLINTNEXTLINE(readability-function-size): gtest's macros nest
std::string foreign_exception(Source& source, const char* thrown_by_taker) {
  try {
    read_tar(source, [&](const TarEntry&, Source&) { throw std::out_of_range(thrown_by_taker); });
  } catch (const std::out_of_range& error) {
    return error.what();
  }
  return "none";
}

TEST(Tar, ExceptionsOfBothSidesPass) {
  class DeadSource final : public Source {
    std::size_t read(ByteSpan) override { throw std::out_of_range("theirs"); }
  } dead;
  EXPECT_EQ(foreign_exception(dead, "mine"), "theirs");
  const std::string tar = tar_of({file_item("a", "x")});
  MemorySource source{as_bytes(tar)};
  EXPECT_EQ(foreign_exception(source, "mine"), "mine");
}

TEST(Tar, HeadersThatCannotBeSaidAreRefused) {
  for (const auto& change : std::vector<std::function<void(TarEntry&)>>{
           [](TarEntry& entry) { entry.path.clear(); },
           [](TarEntry& entry) { entry.path = std::string("a\0b", 3); },
           [](TarEntry& entry) { entry.device_major = 1U << 21U; },
           [](TarEntry& entry) { entry.xattrs["a=b"] = ""; }}) {
    TarEntry entry;
    entry.path = "x";
    change(entry);
    EXPECT_THROW((void)tar_header(entry), Error);
  }
}

using test::ar_member;

class Deb : public ::testing::Test {
 protected:
  fs::path write(const std::string& content) {
    write_file(folder_.path() / "x.deb", content, false);
    return folder_.path() / "x.deb";
  }
  struct Read {
    std::vector<Item> control;
    std::vector<Item> data;
  };
  static Read read(const fs::path& path) {
    Read result;
    auto collect = [](std::vector<Item>& items) {
      return [&items](const TarEntry& entry, Source& data) {
        items.push_back({entry, read_all(data, 1U << 30U)});
      };
    };
    read_deb(path, collect(result.control), collect(result.data));
    return result;
  }
  static std::string code(const fs::path& path) {
    try {
      (void)read(path);
    } catch (const Error& error) {
      return error.code();
    }
    return "none";
  }
  static std::string compressed(const std::string& module, const std::string& data) {
    return test::python("import sys, " + module + ";sys.stdout.buffer.write(" + module +
                            ".compress(sys.stdin.buffer.read()))",
                        data);
  }
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(Deb, ReadsEveryCompression) {
  const std::string control = tar_of({file_item("./control", "Package: x\n")});
  const std::string data = tar_of(zoo());
  const std::string start = "!<arch>\n" + ar_member("debian-binary", "2.0\n");
  const std::string control_gz =
      ar_member("control.tar.gz", as_text(gzip_chunk(as_bytes(control))));
  const std::vector<std::pair<std::string, std::string>> tails = {
      {"data.tar", data},
      {"data.tar.gz", std::string(as_text(gzip_chunk(as_bytes(data))))},
      {"data.tar.xz", compressed("lzma", data)},
      {"data.tar.bz2", compressed("bz2", data)}};
  for (const auto& [name, content] : tails) {
    const fs::path path =
        write(start + control_gz + ar_member("_extra", "odd") + ar_member(name, content));
    const Read found = read(path);
    ASSERT_EQ(found.control.size(), 1U) << name;
    EXPECT_EQ(found.control[0].entry.path, "control");
    EXPECT_EQ(found.control[0].content, "Package: x\n");
    expect_zoo(found.data);
    const std::string half = content.substr(0, content.size() / 2);
    EXPECT_EQ(code(write(start + control_gz + ar_member(name, half))), "bad-deb") << name;
    const std::string whole = start + control_gz + ar_member(name, content);
    EXPECT_EQ(code(write(whole.substr(0, whole.size() - content.size() / 2))), "bad-deb") << name;
  }
}

TEST_F(Deb, RefusesWhatIsNoPackage) {
  const std::string tar = tar_of({file_item("control", "")});
  const std::string start = "!<arch>\n";
  const std::string version = ar_member("debian-binary", "2.0\n");
  const std::string control = ar_member("control.tar", tar);
  const std::string data = ar_member("data.tar", tar);
  EXPECT_EQ(code(write(start + version + control + data)), "none");
  EXPECT_EQ(code(write("")), "bad-deb");
  EXPECT_EQ(code(write("no ar")), "bad-deb");
  EXPECT_EQ(code(write(start)), "bad-deb");
  EXPECT_EQ(code(write(start + control + data)), "bad-deb");
  EXPECT_EQ(code(write(start + version + data)), "bad-deb");
  EXPECT_EQ(code(write(start + version + control)), "bad-deb");
  EXPECT_EQ(code(write(start + ar_member("debian-binary", "3.0\n") + control + data)), "bad-deb");
  EXPECT_EQ(code(write(start + version + control + ar_member("data.tar.zip", tar))), "bad-deb");
  EXPECT_EQ(code(folder_.path() / "absent.deb"), "absent");
}

TEST_F(Deb, ReadsPackagesOfDpkgInParallel) {
  if (!find_program("dpkg-deb")) GTEST_SKIP() << "dpkg-deb is not installed";
  const fs::path tree = folder_.path() / "tree";
  make_folders(tree / "DEBIAN");
  make_folders(tree / "usr/share/na\xC3\xAFve");
  fs::permissions(tree / "DEBIAN", fs::perms(0755));
  const std::string text = test::prose(400'000, 5);
  write_file(tree / "DEBIAN/control",
             "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\n"
             "Description: x\n",
             false);
  write_file(tree / "usr/share/na\xC3\xAFve/prose", text, false);
  Pool pool{4};
  for (const std::string compression : {"xz", "zstd", "gzip", "none"}) {
    const fs::path path = folder_.path() / (compression + ".deb");
    (void)test::output_of({"dpkg-deb", "-z1", "--root-owner-group", "-Z" + compression, "--build",
                           tree.string(), path.string()});
    std::vector<Read> results(6);
    pool.for_each(results.size(), [&](std::size_t i) { results[i] = read(path); });
    for (const Read& found : results) {
      ASSERT_EQ(found.data.size(), 5U) << compression;
      EXPECT_EQ(found.data[0].entry.path, ".");
      EXPECT_EQ(found.data[0].entry.type, TarEntry::Type::folder);
      EXPECT_EQ(found.data[4].entry.path, "usr/share/na\xC3\xAFve/prose");
      EXPECT_EQ(found.data[4].content, text);
      ASSERT_EQ(found.control.size(), 2U);
      EXPECT_EQ(found.control[1].entry.path, "control");
    }
  }
}

}  // namespace
}  // namespace mlenv
