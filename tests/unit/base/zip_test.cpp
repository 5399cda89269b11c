#include "base/zip.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "tests/support/child.hpp"
#include "tests/support/generator.hpp"
#include "tests/support/zip_builder.hpp"

namespace mlenv {
namespace {

using test::little_endian;
using test::ZipBuilder;
using test::ZipHeader;

Fd memory_file(std::string_view content) {
  Fd fd{::memfd_create("zip", MFD_CLOEXEC)};
  write_all(fd.get(), as_bytes(content));
  return fd;
}

/// The last frame of the error, or the members' names.
std::string zip_outcome(std::string_view content) {
  const Fd fd = memory_file(content);
  try {
    std::string names;
    for (const ZipMember& member : read_zip_directory(fd.get())) names += member.name + " ";
    return names;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "bad-zip");
    return error.frames().back();
  }
}

std::string outcome_of_names(const std::vector<std::string>& names) {
  ZipBuilder builder;
  for (const std::string& name : names) builder.add(name, name.ends_with('/') ? "" : "x");
  return zip_outcome(builder.finish());
}

std::string outcome_of_change(const ZipBuilder::Change& local, const ZipBuilder::Change& central) {
  ZipBuilder builder;
  builder.add("a", "content", false, local, central);
  return zip_outcome(builder.finish());
}

TEST(Zip, ReadsWhatPythonWrites) {
  const std::string zip = test::python(R"(
import io, sys, zipfile
f = io.BytesIO()
z = zipfile.ZipFile(f, "w")
def add(name, data, method, mode):
    i = zipfile.ZipInfo(name); i.external_attr = mode << 16; i.compress_type = method
    z.writestr(i, data)
add("pkg/b.py", b"print()\n" * 1000, 8, 0o100644)
add("pkg/a.so", bytes(range(256)), 0, 0o100755)
add("pkg/", b"", 0, 0o40755)
add("caf\u00e9", b"u", 8, 0)
z.close()
sys.stdout.buffer.write(f.getvalue()))");
  const Fd fd = memory_file(zip);
  const std::vector<ZipMember> members = read_zip_directory(fd.get());
  ASSERT_EQ(members.size(), 4U);
  EXPECT_EQ(members[0].name, "caf\xC3\xA9");
  // Python gives files without a mode 0600.
  EXPECT_EQ(members[0].mode & 0111U, 0U);
  EXPECT_EQ(members[1].name, "pkg/");
  EXPECT_TRUE(members[1].is_folder());
  EXPECT_EQ(members[2].name, "pkg/a.so");
  EXPECT_EQ(members[2].method, ZipMember::Method::stored);
  EXPECT_EQ(members[2].mode, 0755U);
  EXPECT_EQ(members[3].size_bytes, 8000U);
  EXPECT_EQ(members[3].method, ZipMember::Method::deflated);
  EXPECT_LT(members[3].compressed_bytes, 100U);
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += "print()\n";
  EXPECT_EQ(read_zip_member(fd.get(), members[3]), expected);
  EXPECT_EQ(read_zip_member(fd.get(), members[2]).size(), 256U);
  EXPECT_EQ(read_zip_member(fd.get(), members[0]), "u");
}

TEST(Zip, ReadsDataDescriptorsAndZip64OfPython) {
  const std::string zip = test::python(R"(
import sys, zipfile
class Pipe:
    def write(self, b): return sys.stdout.buffer.write(b)
    def flush(self): pass
z = zipfile.ZipFile(Pipe(), "w", 8)
with z.open("small", "w") as m: m.write(b"s" * 100)
with z.open("wide", "w", force_zip64=True) as m: m.write(b"w" * 100)
z.close())");
  EXPECT_EQ(zip_outcome(zip), "small wide ");
  const Fd fd = memory_file(zip);
  for (const ZipMember& member : read_zip_directory(fd.get())) {
    EXPECT_EQ(read_zip_member(fd.get(), member), std::string(100, member.name[0]));
  }
}

TEST(Zip, RawBytesLieWhereTheMemberSays) {
  const std::string text = test::prose(100'000, 1);
  ZipBuilder builder;
  builder.add("first", "x", false,
              [](ZipHeader& header) { header.extra = std::string("\x99\x99\2\0ab", 6); });
  builder.add("text", text, true);
  const Fd fd = memory_file(builder.finish("a comment"));
  const std::vector<ZipMember> members = read_zip_directory(fd.get());
  SliceSource source{fd.get(), members[1].offset, members[1].compressed_bytes};
  StringSink sink;
  inflate_stream(source, sink, members[1].size_bytes);
  EXPECT_EQ(sink.text, text);
  EXPECT_EQ(crc32(0, as_bytes(text)), members[1].crc32);
}

TEST(Zip, EmptyArchivesAreFine) {
  EXPECT_EQ(zip_outcome(ZipBuilder{}.finish()), "");
  EXPECT_EQ(zip_outcome(ZipBuilder{}.finish("", 0, true)), "");
}

TEST(Zip, Zip64EndRecord) {
  ZipBuilder builder;
  builder.add("a", "x");
  builder.add("b", "y", true);
  EXPECT_EQ(zip_outcome(builder.finish("note", 0, true)), "a b ");
  std::string contradicted = builder.finish("", 0, true);
  contradicted.replace(contradicted.size() - 12, 2, little_endian(7, 2));
  EXPECT_EQ(zip_outcome(contradicted), "its two end records contradict each other");
}

TEST(Zip, Zip64Sizes) {
  auto wide = [](ZipHeader& header) {
    header.extra = little_endian(1, 2) + little_endian(16, 2) +
                   little_endian(header.size_bytes, 8) + little_endian(header.compressed_bytes, 8);
    header.size_bytes = header.compressed_bytes = 0xFFFFFFFF;
  };
  EXPECT_EQ(outcome_of_change(wide, wide), "a ");
  EXPECT_EQ(outcome_of_change({}, wide), "a ");
  EXPECT_EQ(outcome_of_change(wide, {}), "a ");
  auto cut = [](ZipHeader& header) {
    header.extra = little_endian(1, 2) + little_endian(4, 2) + little_endian(7, 4);
    header.size_bytes = 0xFFFFFFFF;
  };
  EXPECT_EQ(outcome_of_change(cut, cut), "a record is cut short");
}

TEST(Zip, RefusesNamesThatAreNotPlainPaths) {
  EXPECT_EQ(outcome_of_names({"a/b", "a.b", "..c", "d..", "\xFF"}), "..c a.b a/b d.. \xFF ");
  for (const std::string name :
       {"/a", "../a", "a/../b", "a/..", ".", "./a", "a//b", "a/./b", "//", "/", ".."}) {
    EXPECT_NE(outcome_of_names({name}).find("is not a plain relative path"), std::string::npos)
        << name;
  }
  EXPECT_EQ(outcome_of_names({"a\\b"}), "`a\\b` holds a backslash");
  EXPECT_EQ(outcome_of_names({std::string("a\0b", 3)}), "a name holds a NUL byte");
  EXPECT_EQ(outcome_of_names({""}), "a member has no name");
  EXPECT_EQ(outcome_of_names({std::string(4096, 'n')}).size(), 4097U);
  EXPECT_EQ(outcome_of_names({std::string(4097, 'n')}), "a name is longer than 4096 bytes");
}

TEST(Zip, RefusesNamesThatMeetEachOther) {
  EXPECT_EQ(outcome_of_names({"b", "a", "b"}), "`b` is there twice");
  EXPECT_EQ(outcome_of_names({"a", "a/b"}), "`a` is a file and a folder");
  EXPECT_EQ(outcome_of_names({"a", "a-b", "a/b/c/d"}), "`a` is a file and a folder");
  EXPECT_EQ(outcome_of_names({"a", "a/"}), "`a` is a file and a folder");
  EXPECT_EQ(outcome_of_names({"a/", "a/b", "a/b.c", "ab"}), "a/ a/b a/b.c ab ");
}

TEST(Zip, RefusesHeadersThatContradict) {
  const std::string two_ways = "`a` is described in two ways";
  using H = ZipHeader;
  EXPECT_EQ(outcome_of_change([](H& h) { h.name = "b"; }, {}), two_ways);
  EXPECT_EQ(outcome_of_change([](H& h) { h.name = "ab"; }, {}), two_ways);
  EXPECT_EQ(outcome_of_change([](H& h) { h.method = 8; }, {}), two_ways);
  EXPECT_EQ(outcome_of_change([](H& h) { ++h.crc; }, {}), two_ways);
  EXPECT_EQ(outcome_of_change([](H& h) { ++h.size_bytes; }, {}), two_ways);
  EXPECT_EQ(outcome_of_change([](H& h) { --h.compressed_bytes; }, {}), two_ways);
  EXPECT_EQ(outcome_of_change([](H& h) { h.flags = 8; }, {}), two_ways);
  EXPECT_EQ(outcome_of_change([](H& h) { h.flags = 1; }, {}), two_ways);
  auto later = [](H& h) {
    h.flags = 8;
    h.crc = h.size_bytes = h.compressed_bytes = 0;
  };
  auto flagged = [](H& h) { h.flags = 8; };
  EXPECT_EQ(outcome_of_change(later, flagged), "a ");
  EXPECT_EQ(outcome_of_change(
                [](H& h) {
                  h.flags = 8;
                  ++h.size_bytes;
                },
                flagged),
            two_ways);
}

TEST(Zip, RefusesWhatWheelsNeverHold) {
  using H = ZipHeader;
  auto both = [](const ZipBuilder::Change& change) { return outcome_of_change(change, change); };
  EXPECT_EQ(both([](H& h) { h.flags = 1; }), "`a` is encrypted");
  EXPECT_EQ(both([](H& h) { h.method = 12; }),
            "`a` is compressed by method 12, which wheels do not use");
  EXPECT_EQ(both([](H& h) { h.attributes = 0120777U << 16U; }), "`a` is a symbolic link");
  EXPECT_EQ(both([](H& h) { h.attributes = 0020777U << 16U; }),
            "`a` is neither a file nor a folder");
  EXPECT_EQ(both([](H& h) { ++h.size_bytes; }), "`a` cannot be 8 bytes from 7");
  EXPECT_EQ(both([](H& h) {
              h.method = 8;
              h.size_bytes = 1'000'000;
            }),
            "`a` cannot be 1000000 bytes from 7");
  ZipBuilder folder;
  folder.add("a/", "x");
  EXPECT_EQ(zip_outcome(folder.finish()), "`a/` is a folder with content");
}

TEST(Zip, ModesOfOtherSystemsAreNone) {
  ZipBuilder builder;
  builder.add("a", "", false, {}, [](ZipHeader& header) { header.made_by = 0; });
  builder.add("b", "", false, {}, [](ZipHeader& header) { header.attributes = 0755U << 16U; });
  const Fd fd = memory_file(builder.finish());
  const std::vector<ZipMember> members = read_zip_directory(fd.get());
  EXPECT_EQ(members[0].mode, 0U);
  EXPECT_EQ(members[1].mode, 0755U);
}

TEST(Zip, RefusesOverlaps) {
  ZipBuilder same;
  same.add("a", "xxxx");
  same.add("b", "yyyy", false, {}, [](ZipHeader& header) {
    header.offset = 0;
    header.name = "a2";
  });
  EXPECT_NE(zip_outcome(same.finish()).find("overlaps another member"), std::string::npos);
  // The first one's data reaches over the second header.
  ZipBuilder quoted;
  auto grow = [](ZipHeader& header) { header.size_bytes = header.compressed_bytes = 40; };
  quoted.add("a", "xxxx", false, grow, grow);
  quoted.add("b", "yyyyyyyyyyyyyyyyyy");
  EXPECT_EQ(zip_outcome(quoted.finish()), "`b` overlaps another member");
  ZipBuilder last;
  last.add("a", "xxxx", false, grow, grow);
  EXPECT_EQ(zip_outcome(last.finish()), "`a` reaches beyond the members' part of the file");
}

TEST(Zip, RefusesBadDirectories) {
  ZipBuilder builder;
  builder.add("a", "x");
  const std::string zip = builder.finish();
  EXPECT_EQ(zip_outcome(""), "it is too short");
  EXPECT_EQ(zip_outcome(std::string(100, 'x')), "it has no end record");
  EXPECT_EQ(zip_outcome(zip.substr(0, zip.size() - 1)), "it has no end record");
  EXPECT_EQ(zip_outcome(zip + "x"), "its end record is ambiguous");
  EXPECT_EQ(zip_outcome("x" + zip), "its directory does not end at its end record");
  EXPECT_EQ(zip_outcome(builder.finish("", 1)), "its directory cannot have 47 bytes for 2 members");
  builder.add("b", "y");
  EXPECT_EQ(zip_outcome(builder.finish("", -1)), "its directory has more members than it says");
  EXPECT_EQ(zip_outcome(builder.finish("PK\5\6 and more than twenty-two bytes")),
            "its end record is ambiguous");
  EXPECT_EQ(outcome_of_change({}, [](ZipHeader& header) { header.offset = 1; }),
            "`a` is not where it should be");
  EXPECT_EQ(outcome_of_change({}, [](ZipHeader& header) { header.offset = 100000; }),
            "a record lies outside the file");
}

TEST(Zip, EveryTruncationIsNoticed) {
  ZipBuilder builder;
  builder.add("a", "content", true);
  builder.add("b", "content");
  const std::string zip = builder.finish("", 0, true);
  for (std::size_t size = 0; size < zip.size(); ++size) {
    const Fd fd = memory_file(std::string_view(zip).substr(0, size));
    EXPECT_THROW((void)read_zip_directory(fd.get()), Error) << size;
  }
}

TEST(Zip, MemberContentIsChecked) {
  ZipBuilder builder;
  auto wrong = [](ZipHeader& header) { ++header.crc; };
  builder.add("crc", "content", true, wrong, wrong);
  builder.add("good", std::string(1000, 'g'));
  const Fd fd = memory_file(builder.finish());
  const std::vector<ZipMember> members = read_zip_directory(fd.get());
  try {
    (void)read_zip_member(fd.get(), members[0]);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "bad-zip");
  }
  EXPECT_EQ(read_zip_member(fd.get(), members[1], 1000).size(), 1000U);
  try {
    (void)read_zip_member(fd.get(), members[1], 999);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "too-large");
  }
}

}  // namespace
}  // namespace mlenv
