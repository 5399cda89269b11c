// Agents in processes of their own that are sent data.
#include "runner/node/data_intake.hpp"
#include "images/store.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/progress.hpp"
#include "recipes/data_digest.hpp"
#include "recipes/known_data.hpp"
#include "runner/job/data_lists.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/node_harness.hpp"

namespace mlenv::job {
namespace {

using test::TestNode;

class DataIntakeTest : public testing::Test {
 protected:
  DataIntakeTest() : folder_(temporary_root()), store_(folder_.path() / "store") {
    put("a", "one");
    put("large", std::string(3 << 20, 'x'));
    put("part/b", "");
  }
  fs::path data() const { return folder_.path() / "corpus"; }
  fs::path node_store() const { return folder_.path() / "node"; }
  void put(const std::string& path, std::string_view text) const {
    make_folders((data() / path).parent_path());
    write_file(data() / path, text, false);
  }
  /// As the sender knows it now; a node looks for it where it is not.
  DataSet set(bool stage = true) {
    QuietProgress progress;
    const ListedData listed = listed_data(store_, data(), progress);
    return {"corpus",
            listed.digest.str(),
            data().string(),
            "/data/corpus",
            stage,
            listed.list.str(),
            store_.size_of(listed.list).value_or(0),
            listed.size_bytes};
  }
  /// Whether it ended one way or the other.
  static bool over(TestNode& node, std::size_t count = 1) {
    return node.until([&] {
      return node.heard().data.size() == count || !node.heard().failed.empty() || node.heard().lost;
    });
  }
  static std::string trouble(const TestNode& node) {
    return node.heard().failed.empty() ? node.heard().lost.value_or("")
                                       : node.heard().failed.front();
  }
  /// What a node says, that is offered `one`: `during: code: text`.
  std::string refusal_of(const DataSet& one) {
    TestNode node{node_store()};
    node.link().meet("job-1", 0);
    node.link().send_data(store_, lists_, {one});
    return over(node) && node.heard().data.empty() ? trouble(node) : "it has it";
  }

  fs::path kept(const DataSet& one) const {
    return node_store() / "data" / Digest::parse(one.digest).hex();
  }
  /// How much of it came to a node that now has it; nothing: it has not.
  std::optional<std::uint64_t> staged_bytes(const DataSet& one) {
    TestNode node{node_store()};
    node.link().meet("job-1", 0);
    node.link().send_data(store_, lists_, {one});
    const bool has_it = over(node) && node.heard().data.size() == 1;
    EXPECT_TRUE(has_it) << trouble(node);
    if (!has_it || node.heard().data[0].how != "staged") return std::nullopt;
    return node.heard().data[0].sent;
  }
  static void make_pipe(const fs::path& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }

  TemporaryFolder folder_;
  Store store_;
  DataLists lists_{store_};
};

TEST_F(DataIntakeTest, WhatLiesThereIsFound) {
  const DataSet one = set(false);
  TestNode node{node_store()};
  node.link().meet("job-1", 0);
  node.link().send_data(store_, lists_, {one});
  ASSERT_TRUE(over(node));
  ASSERT_EQ(node.heard().data.size(), 1U) << trouble(node);
  EXPECT_EQ(node.heard().data[0].how, "found");
  EXPECT_EQ(node.heard().data[0].path, fs::canonical(data()));
  EXPECT_EQ(node.heard().data[0].sent, 0U);
  EXPECT_EQ(node.heard().data[0].bytes, one.bytes);
}

TEST_F(DataIntakeTest, OtherBytesAndNoneAreToldWhereNothingIsSent) {
  const DataSet one = set(false);
  put("a", "two");
  EXPECT_EQ(refusal_of(one).substr(0, 18), "data: data-differs");
  remove_tree(data());
  EXPECT_EQ(refusal_of(one).substr(0, 13), "data: no-data");
}

/// As the node looks at the same place, it lacks what changed after it was listed.
TEST_F(DataIntakeTest, WhatIsNotWhatWasPromisedIsNotTaken) {
  const DataSet one = set();
  put("a", "two");
  const std::string why = refusal_of(one);
  EXPECT_EQ(why.substr(0, 21), "data: digest-mismatch") << why;
  EXPECT_NE(why.find("corpus/a"), std::string::npos) << why;
  EXPECT_FALSE(fs::exists(node_store() / "data" / Digest::parse(one.digest).hex()));
}

TEST_F(DataIntakeTest, WhatWasWrongAloneComesAgain) {
  const DataSet one = set();
  put("a", "two");
  (void)refusal_of(one);
  put("a", "one");
  write_file(data() / "more", "so that the node does not find it here", false);
  TestNode node{node_store()};
  node.link().meet("job-1", 0);
  node.link().send_data(store_, lists_, {one});
  ASSERT_TRUE(over(node));
  ASSERT_EQ(node.heard().data.size(), 1U) << trouble(node);
  EXPECT_EQ(node.heard().data[0].how, "staged");
  EXPECT_EQ(node.heard().data[0].sent, 3U);
}

TEST_F(DataIntakeTest, WhatIsNoDataThereIsSentAllTheSame) {
  const DataSet one = set();
  make_pipe(data() / "more");
  EXPECT_EQ(staged_bytes(one), one.bytes);
  EXPECT_EQ(fs::status(node_store() / "data").permissions(), fs::perms::owner_all);
}

TEST_F(DataIntakeTest, WhyItCannotBeReachedIsTold) {
  const DataSet one = set(false);
  remove_tree(data());
  fs::create_symlink("corpus", data());
  const std::string why = refusal_of(one);
  EXPECT_EQ(why.substr(0, 13), "data: no-data");
  EXPECT_NE(why.find("Too many levels of symbolic links"), std::string::npos) << why;
}

TEST_F(DataIntakeTest, KeptDataThatIsNoneAnyMoreComesAgain) {
  const DataSet one = set();
  make_pipe(data() / "more");  // so that the node does not find it here
  ASSERT_EQ(staged_bytes(one), one.bytes);
  make_pipe(kept(one) / "part" / "pipe");
  EXPECT_EQ(staged_bytes(one), one.bytes);
  EXPECT_FALSE(fs::exists(kept(one) / "part" / "pipe"));
}

TEST_F(DataIntakeTest, LinksAmongWhatCameAreNotFollowed) {
  put("part/c", "three");
  const DataSet one = set();
  make_pipe(data() / "more");
  const fs::path other = folder_.path() / "other";
  make_folders(other);
  write_file(other / "c", "mine!", false);
  const Store store{node_store()};  // it is one before somebody plants anything there
  const fs::path part = node_store() / "data" / (Digest::parse(one.digest).hex() + ".part");
  make_folders(part / "content/large");  // a folder where a file belongs
  write_file(part / "content/extra", "of nobody", false);
  fs::create_directory_symlink(other, part / "content/part");
  EXPECT_EQ(staged_bytes(one), one.bytes);
  EXPECT_EQ(read_file(other / "c"), "mine!");
  EXPECT_FALSE(fs::exists(other / "b"));
  EXPECT_FALSE(fs::is_symlink(kept(one) / "part"));
}

TEST_F(DataIntakeTest, ListsAreReadOnceForAll) {
  const DataSet one = set();
  std::shared_ptr<const DataList> first = lists_.of(one.list);
  fs::remove(store_.path_of(Digest::parse(one.list)).value());
  EXPECT_EQ(lists_.of(one.list), first);
  first.reset();
  EXPECT_EQ(code_of([&] { (void)lists_.of(one.list); }), "absent");
}

TEST_F(DataIntakeTest, AFileThatChangedIsNotSent) {
  const DataSet one = set();
  put("a", "longer");
  EXPECT_EQ(refusal_of(one).substr(0, 18), "data: file-changed");
}

TEST_F(DataIntakeTest, AgentsOnOneStoreTakeItInOnce) {
  const DataSet one = set();
  write_file(data() / "more", "so that nodes do not find it here", false);
  TestNode first{node_store()};
  TestNode second{node_store()};
  for (TestNode* const node : {&first, &second}) {
    node->link().meet("job-1", 0);
    node->link().send_data(store_, lists_, {one});
  }
  ASSERT_TRUE(over(first));
  ASSERT_TRUE(over(second));
  ASSERT_EQ(first.heard().data.size(), 1U) << trouble(first);
  ASSERT_EQ(second.heard().data.size(), 1U) << trouble(second);
  EXPECT_EQ(first.heard().data[0].sent + second.heard().data[0].sent, one.bytes);
}

TEST_F(DataIntakeTest, OneSetAfterAnother) {
  const DataSet one = set();
  QuietProgress progress;
  const ListedData listed = listed_data(store_, data() / "large", progress);
  const DataSet file{"large",
                     listed.digest.str(),
                     (data() / "large").string(),
                     "/large",
                     true,
                     listed.list.str(),
                     store_.size_of(listed.list).value_or(0),
                     listed.size_bytes};
  TestNode node{node_store()};
  node.link().meet("job-1", 0);
  node.link().send_data(store_, lists_, {one, file});
  ASSERT_TRUE(over(node, 2)) << trouble(node);
  ASSERT_EQ(node.heard().data.size(), 2U) << trouble(node);
  EXPECT_EQ(node.heard().data[1].name, "large");
}

}  // namespace
}  // namespace mlenv::job
