#include "recipes/data_list.hpp"

#include <gtest/gtest.h>

#include "base/progress.hpp"
#include "recipes/data_digest.hpp"
#include "recipes/known_data.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

DataFile data_file(const std::string& path, std::string_view content) {
  return {path, content.size(), false, Digest::of(content)};
}

/// As somebody else may have written it.
std::string listed(const std::vector<std::string>& paths) {
  DataList list;
  for (const std::string& path : paths) list.files.push_back(data_file(path, path));
  return render_data_list(list);
}

TEST(DataList, ComesBackAsItWas) {
  DataList list{{data_file("a b\n", "1"), data_file("part/x", ""), data_file("z", "three")}};
  list.files[2].executable = true;
  const DataList back = parse_data_list(render_data_list(list));
  ASSERT_EQ(back.files.size(), 3U);
  EXPECT_EQ(back.files[0].path, "a b\n");
  EXPECT_EQ(back.files[2].digest, Digest::of("three"));
  EXPECT_TRUE(back.files[2].executable);
  EXPECT_FALSE(back.files[1].executable);
  EXPECT_EQ(back.digest(), list.digest());
  EXPECT_EQ(back.size_bytes(), 6U);
}

TEST(DataList, OfOneFileIsThatFile) {
  const DataList list{{data_file("", "content")}};
  EXPECT_EQ(parse_data_list(render_data_list(list)).digest(), Digest::of("content"));
  EXPECT_EQ(DataList{}.digest(), Digest::of(""));
}

TEST(DataList, NothingLeadsOutOrMeets) {
  using Paths = std::vector<std::string>;
  for (const Paths& paths :
       {Paths{"../x"}, Paths{"/etc/x"}, Paths{"a/../../x"}, Paths{"a", "a"}, Paths{"a", "a/b"},
        Paths{"a/b", "a/b/c"}, Paths{"a", "a-b", "a/b"}, Paths{"a", "a-b/c", "a/b/c/d"}, Paths{"."},
        Paths{"a//b"}, Paths{"a/"}, Paths{"", "b"}}) {
    EXPECT_EQ(code_of([&] { parse_data_list(listed(paths)); }), "bad-data") << paths.front();
  }
}

TEST(DataList, IsSorted) {
  EXPECT_EQ(code_of([&] { parse_data_list(listed({"b", "a"})); }), "bad-data");
  EXPECT_EQ(code_of([&] { parse_data_list(listed({"a/b/c", "a/b"})); }), "bad-data");
  const std::vector<std::string> paths{"a-b", "a/b", "a/b-c/d", "a/c", "aa", "\xff"};
  EXPECT_EQ(parse_data_list(listed(paths)).files.size(), paths.size());
}

TEST(DataList, WhatIsNoListIsRefused) {
  const std::string whole = listed({"a", "b"});
  for (const std::string& text : {std::string(), std::string("mlenv data 2\n"),
                                  whole.substr(0, whole.size() - 1), whole + "1 - "}) {
    EXPECT_EQ(code_of([&] { parse_data_list(text); }), "bad-data") << text;
  }
  std::string other = whole;
  other[other.find('-')] = '?';
  EXPECT_EQ(code_of([&] { parse_data_list(other); }), "bad-data");
}

/// Somebody writes while it is read.
class WhileRead final : public Progress {
 public:
  explicit WhileRead(fs::path changed) : changed_(std::move(changed)) {}
  int begin(std::string_view, std::uint64_t, std::string_view) override { return 0; }
  void advance(int, std::uint64_t) override {}
  void end(int, std::string_view) override { write_file(changed_, "other", false); }
  void note(std::string_view) override {}

 private:
  fs::path changed_;
};

TEST(KnownData, WhatChangedWhileItWasReadIsNotRemembered) {
  const TemporaryFolder folder{temporary_root()};
  Store store{folder.path() / "store"};
  QuietProgress progress;
  const fs::path path = folder.path() / "set";
  make_folders(path);
  WhileRead writer{path / "a"};
  const auto digest_now = [&] {
    Pool pool;
    return data_digest(path, pool, progress);
  };
  write_file(path / "a", "one", false);
  EXPECT_EQ(code_of([&] { known_data_digest(store, path, writer); }), "file-changed");
  EXPECT_EQ(known_data_digest(store, path, progress), digest_now());
  write_file(path / "a", "one", false);
  EXPECT_EQ(code_of([&] { listed_data(store, path, writer); }), "file-changed");
  EXPECT_EQ(known_data_digest(store, path, progress), digest_now());
  // Also where the list was known, and is gone.
  write_file(path / "a", "one", false);
  const ListedData listed = listed_data(store, path, progress);
  fs::remove(store.path_of(listed.list).value());
  EXPECT_EQ(code_of([&] { listed_data(store, path, writer); }), "file-changed");
  EXPECT_EQ(listed_data(store, path, progress).digest, digest_now());
}

TEST(KnownData, WhatSomebodyElseReadIsRememberedAsItWas) {
  const TemporaryFolder folder{temporary_root()};
  Store store{folder.path() / "store"};
  QuietProgress progress;
  const fs::path path = folder.path() / "file";
  write_file(path, "one", false);
  const Digest before = data_fingerprint(path);
  remember_data(store, path, before, Digest::of("what it is told"));
  EXPECT_EQ(known_data_digest(store, path, progress), Digest::of("what it is told"));
  write_file(path, "two!", false);
  remember_data(store, path, before, Digest::of("one"));
  EXPECT_EQ(known_data_digest(store, path, progress), Digest::of("two!"));
}

TEST(KnownData, IsReadAgainOnceItChanged) {
  const TemporaryFolder folder{temporary_root()};
  Store store{folder.path() / "store"};
  QuietProgress progress;
  const fs::path path = folder.path() / "set";
  make_folders(path);
  write_file(path / "a", "one", false);
  const ListedData first = listed_data(store, path, progress);
  EXPECT_EQ(first.digest, known_data_digest(store, path, progress));
  EXPECT_EQ(first.size_bytes, 3U);
  EXPECT_EQ(read_data_list(store, first.list).digest(), first.digest);
  EXPECT_EQ(listed_data(store, path, progress).list, first.list);
  write_file(path / "a", "three", false);
  const ListedData second = listed_data(store, path, progress);
  EXPECT_NE(second.digest, first.digest);
  EXPECT_EQ(second.size_bytes, 5U);
  EXPECT_EQ(second.digest, known_data_digest(store, path, progress));
}

}  // namespace
}  // namespace mlenv
